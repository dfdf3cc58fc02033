package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "recalld/proto/recalld/v1"
)

const (
	// singleAppends turns are appended alone, one after the other.
	singleAppends = 200
	// speedQueries are timed, after warmQueries others.
	speedQueries, warmQueries = 400, 20
	// rebuildTime bounds how long views may take to be made anew.
	rebuildTime = 30 * time.Minute
)

// A SpeedReport is what the benchmark found.
type SpeedReport struct {
	Made  Provenance  `json:"made"`
	Sizes []SpeedSize `json:"sizes"`
}

// A SpeedSize is the figures of a synthetic memory. Times are in milliseconds
// and seen from the client; rates are per second.
type SpeedSize struct {
	Turns    int `json:"turns"`
	Messages int `json:"messages"`
	// BatchRate is turns per second until the last batch is acknowledged,
	// CoveredRate until words and vectors cover all of them.
	BatchRate   float64     `json:"batch_turns_per_s"`
	CoveredRate float64     `json:"covered_turns_per_s"`
	CoveredIn   float64     `json:"covered_s"`
	Append      Percentiles `json:"append_ms"`
	Recall      Percentiles `json:"recall_ms"`
	RecallWords Percentiles `json:"recall_words_ms"`
	// Start is from starting the process until it serves, FirstRecall the
	// first answer after that.
	Start       float64 `json:"start_ms"`
	FirstRecall float64 `json:"first_recall_ms"`
	// RebuildRate is messages per second; 0 when the server cannot rebuild.
	RebuildRate float64 `json:"rebuild_messages_per_s"`
	// Resident is the memory of the process, in MiB; 0 when it is not known.
	Resident float64 `json:"rss_mib"`
	Disk     float64 `json:"disk_mib"`
}

func newSpeedCommand(o *options) *cobra.Command {
	var sizes []int
	var out string
	command := &cobra.Command{
		Use:     "speed",
		Short:   "Time a server with synthetic memories",
		Example: "  go run ./evals speed --turns 1000,20000",
		Args:    noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			if o.root != "" || o.socket != "" {
				return &usageError{errors.New("speed restarts the server, so it needs one of its own")}
			}
			// Found out now, not after minutes of measuring.
			if err := makeFolder(out); err != nil {
				return err
			}
			report, err := measureSpeed(command.Context(), sizes)
			if err != nil {
				return err
			}
			return report.publish(o, out, command.OutOrStdout())
		},
	}
	command.Flags().IntSliceVar(&sizes, "turns", []int{1_000, 20_000, 100_000}, "sizes of the memories, in turns")
	command.Flags().StringVar(&out, "out", "evals", "folder of "+speedFile+", which the report reads; empty writes none")
	return command
}

// publish writes the figures for the report, for --json, and for a person.
func (r *SpeedReport) publish(o *options, folder string, out io.Writer) error {
	if folder != "" {
		if err := writeJSON(filepath.Join(folder, speedFile), r, out); err != nil {
			return err
		}
	}
	if o.json != "" {
		if err := writeJSON(o.json, r, out); err != nil {
			return err
		}
	}
	if o.json == "-" {
		return nil
	}
	return r.table().print(out)
}

func (r *SpeedReport) table() *table {
	t := &table{heading: []string{
		"turns", "append p50 ms", "append p95 ms", "batch turns/s", "covered turns/s",
		"recall p50 ms", "recall p95 ms", "recall p99 ms", "words p50 ms", "words p95 ms",
		"start ms", "first recall ms", "rebuild messages/s", "RSS MiB", "disk MiB",
	}}
	for _, s := range r.Sizes {
		t.rows = append(t.rows, []string{
			strconv.Itoa(s.Turns), number(s.Append.P50), number(s.Append.P95), whole(s.BatchRate), whole(s.CoveredRate),
			number(s.Recall.P50), number(s.Recall.P95), number(s.Recall.P99), number(s.RecallWords.P50), number(s.RecallWords.P95),
			whole(s.Start), number(s.FirstRecall), whole(s.RebuildRate), whole(s.Resident), whole(s.Disk),
		})
	}
	return t
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

func whole(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }

// measureSpeed times a server with a memory of each size, each with a store of
// its own.
func measureSpeed(ctx context.Context, sizes []int) (*SpeedReport, error) {
	report := &SpeedReport{Made: provenance(ctx)}
	progress := progressFor(os.Stderr)
	for _, turns := range sizes {
		size, err := measureSize(ctx, turns, progress)
		if err != nil {
			return nil, fmt.Errorf("%d turns: %w", turns, err)
		}
		report.Sizes = append(report.Sizes, size)
	}
	return report, nil
}

func measureSize(ctx context.Context, turns int, progress func(string, int) *bar) (size SpeedSize, err error) {
	server, err := buildServer(ctx)
	if err != nil {
		return size, err
	}
	defer func() { err = errors.Join(err, server.remove()) }()
	client, err := server.start(ctx)
	if err != nil {
		return size, err
	}
	trial := &trial{
		project: fmt.Sprintf("speed/%d", turns),
		client:  client,
		runner:  &Runner{client: client, progress: progress},
	}
	size.Turns = turns
	if err := trial.warm(ctx, &size); err != nil {
		return size, errors.Join(err, client.Close())
	}
	if err := client.Close(); err != nil {
		return size, err
	}
	return size, trial.cold(ctx, server, &size)
}

// A trial is the measurement of one memory.
type trial struct {
	project string
	client  *Client
	runner  *Runner
	made    int
}

// warm measures all that one life of the server shows.
func (t *trial) warm(ctx context.Context, size *SpeedSize) error {
	for _, step := range []func(context.Context, *SpeedSize) error{t.fill, t.single, t.ask, t.weigh, t.rebuild} {
		if err := step(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// fill appends the turns in batches. Making the texts is not timed.
func (t *trial) fill(ctx context.Context, size *SpeedSize) error {
	memory := Memory{Project: t.project, Turns: newGenerator(0).turns(t.project, 0, size.Turns)}
	t.made = size.Turns
	bar := t.runner.bar(fmt.Sprintf("append %d turns", size.Turns), memory.messages())
	defer bar.close()
	start := time.Now()
	if err := t.client.appendAll(ctx, memory, bar.add); err != nil {
		return err
	}
	size.BatchRate = rate(size.Turns, start)
	size.Messages = memory.messages()
	if err := t.client.awaitReach(ctx, t.project, uint64(size.Messages)); err != nil {
		return err
	}
	size.CoveredIn = round(time.Since(start).Seconds())
	size.CoveredRate = rate(size.Turns, start)
	return nil
}

// rate is how many a second have been done since start.
func rate(n int, start time.Time) float64 {
	return math.Round(float64(n) / time.Since(start).Seconds())
}

// single appends turns one by one.
func (t *trial) single(ctx context.Context, size *SpeedSize) error {
	turns := newGenerator(1).turns(t.project, t.made, singleAppends)
	t.made += singleAppends
	var took []time.Duration
	for _, turn := range turns {
		start := time.Now()
		_, err := t.client.memories.Append(ctx, &pb.AppendRequest{
			Memory: memoryRef(t.project), Turns: []*pb.NewTurn{turn},
		})
		if err != nil {
			return fmt.Errorf("append one turn: %w", err)
		}
		took = append(took, time.Since(start))
	}
	size.Append = percentiles(took)
	return t.client.awaitReach(ctx, t.project, uint64(2*t.made))
}

// ask times questions as a harness asks them, but past the gate, so that an
// answer is made in full; then by words alone.
func (t *trial) ask(ctx context.Context, size *SpeedSize) (err error) {
	if size.Recall, err = t.times(ctx, Pass{}); err != nil {
		return err
	}
	size.RecallWords, err = t.times(ctx, wordsOnly)
	return err
}

func (t *trial) times(ctx context.Context, pass Pass) (Percentiles, error) {
	words := newGenerator(2)
	var took []time.Duration
	for i := range warmQueries + speedQueries {
		answer, err := t.runner.askOne(ctx, t.request(words.text(queryWords), pass))
		if err != nil {
			return Percentiles{}, err
		}
		if i >= warmQueries {
			took = append(took, answer.Took)
		}
	}
	return percentiles(took), nil
}

func (t *trial) request(query string, pass Pass) *pb.RecallRequest {
	request := askRequest(&Question{Project: t.project, Text: query}, pass, false)
	withDefaults(request)
	return request
}

// weigh reads what the server takes of memory and disk.
func (t *trial) weigh(ctx context.Context, size *SpeedSize) error {
	answer, err := t.client.admin.Status(ctx, &pb.StatusRequest{Memory: memoryRef(t.project)})
	if err != nil {
		return fmt.Errorf("status: %w", err)
	}
	if len(answer.Memories) == 1 {
		size.Disk = mebibytes(answer.Memories[0].DiskBytes)
	}
	size.Resident = mebibytes(residentBytes(answer.ProcessId))
	return nil
}

func mebibytes(n uint64) float64 { return round(float64(n) / (1 << 20)) }

// residentBytes reads the resident set of a process from Linux's proc; 0 where
// there is none.
func residentBytes(process uint32) uint64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kib, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// rebuild times how fast the views are made anew.
func (t *trial) rebuild(ctx context.Context, size *SpeedSize) error {
	ctx, cancel := context.WithTimeout(ctx, rebuildTime)
	defer cancel()
	start := time.Now()
	stream, err := t.client.admin.Rebuild(ctx, &pb.RebuildRequest{Memory: memoryRef(t.project)})
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) == codes.Unimplemented {
		return nil
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("rebuild: %w", err)
	}
	if err := t.client.awaitReach(ctx, t.project, uint64(2*t.made)); err != nil {
		return err
	}
	size.RebuildRate = rate(2*t.made, start)
	return nil
}

// cold starts the server again and times its first answer.
func (t *trial) cold(ctx context.Context, server *Server, size *SpeedSize) error {
	server.stop()
	start := time.Now()
	client, err := server.start(ctx)
	if err != nil {
		return err
	}
	size.Start = milliseconds(time.Since(start))
	t.client, t.runner.client = client, client
	answer, err := t.runner.askOne(ctx, t.request(newGenerator(3).text(queryWords), Pass{}))
	size.FirstRecall = milliseconds(answer.Took)
	return errors.Join(err, client.Close())
}
