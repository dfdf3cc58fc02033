package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"recalld/consolidate"
	"recalld/llm"
	recalldv1 "recalld/proto/recalld/v1"
)

// A diagnosis is what one check of doctor saw.
type diagnosis struct {
	Check string `json:"check"`
	// State is ok, warning or failed.
	State string `json:"state"`
	Seen  string `json:"seen"`
	// Remedy says what to type, if there is anything to do.
	Remedy string `json:"remedy,omitempty"`
	// Milliseconds the check took.
	Milliseconds int64 `json:"milliseconds"`
}

const (
	stateOK      = "ok"
	stateWarning = "warning"
	stateFailed  = "failed"
)

// doctorPatience is how long one check may take: a model that has to be loaded
// first may take half a minute.
const doctorPatience = 90 * time.Second

// doctorCall leaves room in it for the three calls that an extraction may take.
const doctorCall = 25 * time.Second

func (a *app) doctorCommand() *cobra.Command {
	var o modelOptions
	serve := a.serveCommand().Flags()
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the store, the server and the models",
		Long: `Doctor looks at what recalld rests on, as you would: the store's folder, the
server, and the models that serve would ask (from the flags here, or else from
serve.flags in the store's folder): is the server of a model reachable, is the
model there, does one embedding and one answer come back, in what time. For what
is missing it says what to type. It changes nothing and starts no server; what a
model is asked holds no words of yours. The status is 1 if a check failed.`,
		Example: `  recalld doctor
  recalld doctor --embed ollama:all-minilm --expand ollama:qwen3:4b
  recalld doctor --json | jq 'select(.state != "ok")'`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readFlags(a.root, cmd.Flags(), serve); err != nil {
				return err
			}
			return a.doctor(cmd.Context(), o)
		},
	}
	o.register(cmd)
	return cmd
}

// A checkup is a check with its name; it gives what it saw.
type checkup struct {
	name string
	run  func(context.Context) (seen, remedy string, err error)
}

// errWarning is the error of a check that found something worth saying and
// nothing broken.
var errWarning = errors.New("warning")

func (a *app) doctor(ctx context.Context, o modelOptions) error {
	models, err := o.open(nil, os.Getenv)
	if err != nil {
		return err
	}
	defer models.close()
	checks := []checkup{{"store", a.checkStore}, {"server", a.checkServer}}
	checks = append(checks, models.checks(o)...)
	failed := 0
	for _, c := range checks {
		f := c.find(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if f.State == stateFailed {
			failed++
		}
		if err := a.printDiagnosis(f); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("doctor: %s failed", count(failed, "check", "checks"))
	}
	return nil
}

// find runs a check within its time.
func (c checkup) find(ctx context.Context) diagnosis {
	limited, cancel := context.WithTimeout(ctx, doctorPatience)
	defer cancel()
	began := time.Now()
	seen, remedy, err := c.run(limited)
	f := diagnosis{Check: c.name, State: stateOK, Seen: seen, Remedy: remedy, Milliseconds: time.Since(began).Milliseconds()}
	switch {
	case errors.Is(err, errWarning):
		f.State = stateWarning
	case errors.Is(err, context.DeadlineExceeded), err != nil && limited.Err() != nil:
		f.State, f.Seen = stateFailed, fmt.Sprintf("no answer within %v", time.Since(began).Round(time.Second))
	case err != nil:
		f.State, f.Seen = stateFailed, err.Error()
	}
	return f
}

func (a *app) printDiagnosis(f diagnosis) error {
	if a.json {
		b, err := json.Marshal(f)
		if err != nil {
			return fmt.Errorf("doctor: %w", err)
		}
		return a.print(append(b, '\n'))
	}
	p := a.page()
	mark := map[string]string{stateOK: "ok      ", stateWarning: "warning ", stateFailed: "FAILED  "}[f.State]
	p.printf("%s%s", mark, p.bold(f.Check))
	if f.Milliseconds >= 10 {
		p.printf(" (%d ms)", f.Milliseconds)
	}
	p.printf("\n")
	p.paragraph(len(mark), oneLine(f.Seen), nil)
	if f.Remedy != "" {
		p.paragraph(len(mark), f.Remedy, nil)
	}
	return nil
}

// checkStore looks at the folder of the store.
func (a *app) checkStore(context.Context) (seen, remedy string, err error) {
	info, err := os.Stat(a.root)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return a.root + " is not there yet; the first command that stores something makes it", "", nil
	case err != nil:
		return "", "", err
	case !info.IsDir():
		return "", "name a folder with --root", fmt.Errorf("%s is not a folder", a.root)
	case unixRights && info.Mode().Perm()&0o077 != 0:
		return a.root + " is open to other users", "chmod 700 " + a.root, errWarning
	case !isWritable(a.root):
		return a.root + " cannot be written to: what is stored can be read, and nothing is added", "", errWarning
	}
	return a.root, "", nil
}

// checkServer looks whether a server runs, and asks it how it is.
func (a *app) checkServer(ctx context.Context) (seen, remedy string, err error) {
	c, err := a.reach(ctx)
	if errors.Is(err, errNoServer) {
		return "none runs; the first command that needs one starts it", "", nil
	}
	if err != nil {
		return "", "recalld stop", err
	}
	defer c.close()
	s, err := c.admin.Status(ctx, &recalldv1.StatusRequest{})
	if err != nil {
		return "", "recalld stop", a.failed("status", err)
	}
	seen = fmt.Sprintf("process %d serves %s; meaning: %s, expansion: %s, journal: %s", s.GetProcessId(),
		count(len(s.GetMemories()), "memory", "memories"), s.GetEmbeddingModel(), s.GetExpansionModel(), s.GetExtractionModel())
	var troubles []string
	for _, m := range s.GetMemories() {
		for _, trouble := range troublesOf(m) {
			troubles = append(troubles, fmt.Sprintf("%s, %s: %s", m.GetAgent(), m.GetProject(), trouble))
		}
	}
	if len(troubles) > 0 {
		return seen + "; " + strings.Join(troubles, "; "), "recalld verify --deep tells more", errWarning
	}
	return seen, "", nil
}

// checks are those of the models.
func (m models) checks(o modelOptions) []checkup {
	var list []checkup
	if m.embed == nil {
		list = append(list, checkup{"embedding", func(context.Context) (string, string, error) {
			if o.embed == off {
				return "off: words alone", "", nil
			}
			return "built in, no server needed", "", nil
		}})
	} else {
		list = append(list, leaves("embedding", m.embed)...)
		list = append(list, checkup{"embedding with " + m.embed.Model().String(), m.checkEmbedding})
	}
	if m.expand != nil {
		list = append(list, leaves("expansion", m.expand)...)
		list = append(list, checkup{"expansion with " + m.expand.Model().String(), m.checkExpansion})
	}
	if m.extract != nil {
		list = append(list, leaves("extraction", m.extract)...)
		list = append(list, checkup{"extraction with " + m.extract.Model().String(), m.checkExtraction})
	}
	return list
}

// leaves warns when what is remembered leaves the machine.
func leaves(what string, c *llm.Client) []checkup {
	if c.Model().Loopback() {
		return nil
	}
	return []checkup{{"privacy of " + what, func(context.Context) (string, string, error) {
		return c.URL().Host + " is not this machine: memory text leaves it", "use a server at 127.0.0.1 to keep it here", errWarning
	}}}
}

func (m models) checkEmbedding(ctx context.Context) (seen, remedy string, err error) {
	info, err := m.remote.Check(ctx)
	if err != nil {
		return "", modelRemedy(m.embed, err), err
	}
	return fmt.Sprintf("%d dimensions, one text in %d ms", info.Dimensions, info.Took.Milliseconds()), "", nil
}

// doctorQuestion holds nobody's words.
const doctorQuestion = "which database did we choose for the billing service"

func (m models) checkExpansion(ctx context.Context) (seen, remedy string, err error) {
	words, err := m.expander.Expand(ctx, doctorQuestion)
	if err != nil {
		return "", modelRemedy(m.expand, err), err
	}
	if len(words) == 0 {
		return "answers, but proposed nothing", "a larger model may do better", errWarning
	}
	return fmt.Sprintf("%q: %s", doctorQuestion, strings.Join(words, ", ")), "", nil
}

// checkExtraction has the model read a window that holds a decision. What it
// finds is not judged, only that it answers in the form that is asked for.
func (m models) checkExtraction(ctx context.Context) (seen, remedy string, err error) {
	say := func(id string, kind consolidate.MessageKind, text string) consolidate.Message {
		return consolidate.Message{ID: id, Seq: uint64(len(id)), Kind: kind, Speaker: kind.String(), Text: []byte(text)}
	}
	chat := consolidate.Session{ID: "doctor", Closed: []uint64{1}, Turns: []consolidate.Turn{{
		ID: "doctor", Seq: 1, Status: consolidate.Finished, Messages: []consolidate.Message{
			say("a", consolidate.User, "Let's use Postgres for the billing service."),
			say("bb", consolidate.Reply, "Postgres it is."),
		},
	}}}
	windows, _ := chat.Windows(consolidate.Position{})
	model := consolidate.NewModel(m.extract, consolidate.ModelOptions{Call: doctorCall})
	for _, w := range windows {
		if _, err := model.Extract(ctx, w); err != nil {
			return "", modelRemedy(m.extract, err), err
		}
	}
	return "answers in the form that is asked for", "", nil
}

// modelRemedy says what to type when a model cannot be asked.
func modelRemedy(c *llm.Client, err error) string {
	ollama := c.Model().Provider == llm.Ollama
	switch {
	case strings.Contains(err.Error(), "type: ollama "): // it says so itself
		return ""
	case errors.Is(err, llm.ErrMissing) && ollama:
		return "ollama pull " + c.Model().Name
	case errors.Is(err, llm.ErrMissing):
		return "look up the models this server has, or name another with --openai-url"
	case errors.Is(err, llm.ErrUnreachable) && ollama:
		return "ollama serve, or set OLLAMA_HOST to where it runs"
	case errors.Is(err, llm.ErrUnreachable):
		return "check --openai-url and the network"
	case errors.Is(err, llm.ErrUnauthorized):
		return "put a valid key into a file of your own and name it with --openai-key-file"
	case errors.Is(err, llm.ErrRefused):
		return "if " + c.Model().Name + " is a model for embeddings, name one that chats"
	case errors.Is(err, context.DeadlineExceeded):
		return "it may have been loading: try again; if it stays so, a smaller model is faster"
	}
	return ""
}
