package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "recalld/proto/recalld/v1"
)

const (
	// batchTurns and batchBytes bound one Append, well below the server's
	// limits of 500 turns and 16 MiB.
	batchTurns = 500
	batchBytes = 2 << 20
	// maxAnswer is the largest answer a client takes.
	maxAnswer = 64 << 20
	// pollEvery is how often the reach of a memory is looked at.
	pollEvery = 20 * time.Millisecond
	// patience is how long a memory may stand still before it is given up.
	patience = 5 * time.Minute
)

// A Client talks to one server and remembers what it has appended.
type Client struct {
	conn     *grpc.ClientConn
	memories pb.MemoriesServiceClient
	recall   pb.RecallServiceClient
	admin    pb.AdminServiceClient
	poll     time.Duration

	mu   sync.Mutex // guards held
	held map[string]bool
}

// newClient makes a client of a connection, which it closes.
func newClient(conn *grpc.ClientConn) *Client {
	return &Client{
		conn:     conn,
		memories: pb.NewMemoriesServiceClient(conn),
		recall:   pb.NewRecallServiceClient(conn),
		admin:    pb.NewAdminServiceClient(conn),
		held:     make(map[string]bool),
		poll:     pollEvery,
	}
}

// dial connects to a Unix socket with the token beside the store.
func dial(socket, tokenFile string) (*Client, error) {
	token, err := os.ReadFile(tokenFile)
	if err != nil {
		return nil, fmt.Errorf("read token: %w", err)
	}
	path, err := filepath.Abs(socket)
	if err != nil {
		return nil, err
	}
	conn, err := grpc.NewClient("unix://"+path,
		grpc.WithAuthority("localhost"),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithPerRPCCredentials(bearer(strings.TrimSpace(string(token)))),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxAnswer)))
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	return newClient(conn), nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// A bearer is a token that goes with every call.
type bearer string

// GetRequestMetadata gives the header of a call.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity is false: the socket belongs to one user.
func (bearer) RequireTransportSecurity() bool { return false }

func memoryRef(project string) *pb.MemoryRef {
	return &pb.MemoryRef{Agent: agent, Project: project}
}

// ingest appends a memory, once, and returns when words and vectors cover it.
// It reports the messages appended to done.
func (c *Client) ingest(ctx context.Context, memory Memory, done func(messages int)) error {
	if c.holds(memory.Project) {
		done(memory.messages())
		return nil
	}
	if err := c.appendAll(ctx, memory, done); err != nil {
		return err
	}
	if err := c.awaitReach(ctx, memory.Project, uint64(memory.messages())); err != nil {
		return err
	}
	c.note(memory.Project, true)
	return nil
}

// holds reports whether a memory was appended already.
func (c *Client) holds(project string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.held[project]
}

func (c *Client) note(project string, held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held {
		c.held[project] = true
	} else {
		delete(c.held, project)
	}
}

// appendAll appends the turns of a memory in batches.
func (c *Client) appendAll(ctx context.Context, memory Memory, done func(messages int)) error {
	for turns := memory.Turns; len(turns) > 0; {
		n := batchSize(turns)
		request := &pb.AppendRequest{Memory: memoryRef(memory.Project), Turns: turns[:n]}
		answer, err := c.memories.Append(ctx, request)
		if err != nil {
			return fmt.Errorf("append to %s: %w", memory.Project, err)
		}
		if answer.Forgotten > 0 {
			return fmt.Errorf("append to %s: %d messages were forgotten earlier", memory.Project, answer.Forgotten)
		}
		done(int(answer.Stored + answer.Duplicates))
		turns = turns[n:]
	}
	return nil
}

// batchSize is how many of the turns go into the next request: one at least.
func batchSize(turns []*pb.NewTurn) int {
	bytes := 0
	for i, turn := range turns {
		for _, message := range turn.Messages {
			bytes += len(message.Text)
		}
		if i > 0 && (i == batchTurns || bytes > batchBytes) {
			return i
		}
	}
	return len(turns)
}

// awaitReach waits until at least so many messages are held, and words and,
// where there is a model, vectors cover all of them.
func (c *Client) awaitReach(ctx context.Context, project string, messages uint64) error {
	var last *pb.Reach
	moved := time.Now()
	for {
		answer, err := c.admin.Status(ctx, &pb.StatusRequest{Memory: memoryRef(project)})
		if err != nil {
			return fmt.Errorf("status of %s: %w", project, err)
		}
		if len(answer.Memories) != 1 {
			return fmt.Errorf("status of %s: %d memories, want 1", project, len(answer.Memories))
		}
		reach := answer.Memories[0].GetReach()
		if covers(reach, messages, answer.EmbeddingModel) {
			return nil
		}
		if last == nil || reach.GetIndexed() != last.GetIndexed() || reach.GetEmbedded() != last.GetEmbedded() {
			last, moved = reach, time.Now()
		}
		if time.Since(moved) > patience {
			return fmt.Errorf("%s stands still: %d of %d messages indexed, %d embedded",
				project, reach.GetIndexed(), reach.GetSequence(), reach.GetEmbedded())
		}
		if err := pause(ctx, c.poll); err != nil {
			return err
		}
	}
}

func covers(reach *pb.Reach, messages uint64, model string) bool {
	embedded := model == "" || model == "off" || reach.GetEmbedded() >= reach.GetSequence()
	return reach.GetSequence() >= messages && reach.GetIndexed() >= reach.GetSequence() && embedded
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// forget removes a whole memory. A server that cannot yet keeps it.
func (c *Client) forget(ctx context.Context, project string) error {
	_, err := c.memories.Forget(ctx, &pb.ForgetRequest{Memory: memoryRef(project), WholeMemory: true})
	if err != nil && status.Code(err) != codes.Unimplemented {
		return fmt.Errorf("forget %s: %w", project, err)
	}
	c.note(project, false)
	return nil
}
