package main

import (
	"context"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/bbolt"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"recalld/llm/llmtest"
	recalldv1 "recalld/proto/recalld/v1"
)

const (
	// switchDimensions are those of both fake models.
	switchDimensions = 16
	// switchDeadline is what each recall has.
	switchDeadline = 2 * time.Second
	// switchCallers ask all the time.
	switchCallers = 2
	// switchBatch is the most texts of one request, so the most that a kill may
	// cost.
	switchBatch = 32
	// switchQueries is how many different questions are asked over and over.
	switchQueries = 40
)

var switchRef = &recalldv1.MemoryRef{Agent: "codex", Project: "switch"}

// A switching is a memory whose embedding model is changed while it is asked.
type switching struct {
	t     *testing.T
	p     *place
	turns int
	// What must be answered to each question: by words alone, with the built-in
	// model's meaning, and with that on which both fake models agree.
	want, wantBuiltIn, wantMeant []map[string]float64
	// life is odd while a server is up, and grows with every start and every end.
	life atomic.Int64
	// read counts by model the messages that it was sent, query the queries.
	mu   sync.Mutex
	read map[string]int

	// model is the one that is being switched to.
	model atomic.Value

	loaded                       atomic.Bool // callers ask
	asked, retried, meant, whole atomic.Int64
	cmd                          *exec.Cmd
	wait                         func() int
}

// TestSwitchModel changes the embedding model of a memory from the built-in one
// to A, to B of the same dimension, and back, while callers ask all the time, and
// kills the server in the middle. RECALLD_SWITCH_TURNS sets the size of the
// memory.
//
// B's vectors are A's with their numbers in reverse, so that what either says
// by itself is the same, and a query of one compared with messages of the other
// gives scores that are wrong.
func TestSwitchModel(t *testing.T) {
	w := &switching{t: t, p: newPlace(t), turns: 300, read: map[string]int{}}
	if n, err := strconv.Atoi(os.Getenv("RECALLD_SWITCH_TURNS")); err == nil {
		w.turns = n
	}
	w.model.Store(builtIn)
	s := llmtest.New(t, llmtest.Options{Dimension: switchDimensions, Latency: 10 * time.Millisecond, Vector: w.vector})
	w.p.env = []string{"OLLAMA_HOST=" + s.URL}

	w.start(builtIn)
	w.fill()
	w.want, w.wantBuiltIn = w.answers(recalldv1.Source_SOURCE_WORDS, recalldv1.Source_SOURCE_CONTEXT), w.answers()
	w.stop()
	w.start("a")
	w.finish("a")
	w.wantMeant = w.answers()
	w.stop()
	w.differ(w.want, w.wantBuiltIn)
	w.differ(w.want, w.wantMeant)
	w.clear()
	if err := os.Remove(w.vectors()); err != nil {
		t.Fatal(err)
	}

	w.start(builtIn)
	end := w.load()
	w.stop()
	w.start("a")
	w.awaitRead("a", w.turns/4)
	w.kill("a")
	w.start("a")
	w.finish("a")
	w.readAtMost("a", w.turns+2*switchBatch) // what was sent when it was killed
	w.stop()
	w.clear()
	w.start(builtIn)
	w.stop()
	w.start("a") // free: the built-in model has left the vectors alone
	w.finish("a")
	w.readAtMost("a", 0)
	w.stop()

	w.start("b")
	w.awaitRead("b", w.turns/2)
	w.kill("b")
	w.kept("a", "b")
	w.start("b")
	w.finish("b")
	w.readAtMost("b", w.turns+2*switchBatch)
	w.stop()
	w.kept("b")

	w.clear()
	w.start("a")
	w.awaitRead("a", w.turns/3)
	w.kill("a")
	w.kept("a", "b")
	w.start("b") // free: B was complete, and A is not
	w.finish("b")
	w.readAtMost("b", 0)
	w.stop()
	w.start("a")
	w.finish("a")
	w.stop()
	w.kept("a")
	end()
	if w.meant.Load() == 0 || w.whole.Load() == 0 || w.meant.Load() == w.asked.Load() {
		t.Errorf("of %d answers %d had meaning, %d of all messages: nothing was tested", w.asked.Load(), w.meant.Load(), w.whole.Load())
	}
	t.Logf("%d turns: %d recalls answered, none failed; %d tried again on a dead socket; %d with meaning, %d of them with that of all messages",
		w.turns, w.asked.Load(), w.retried.Load(), w.meant.Load(), w.whole.Load())
}

// switchNouns are words that the built-in model knows.
var switchNouns = strings.Fields("anchor apple basket bridge candle castle cellar cherry circle copper corner cotton " +
	"desert dragon engine falcon feather forest garden hammer harbour helmet island jacket kettle ladder lantern leather " +
	"lemon marble market meadow mirror needle orange oyster paddle pepper pillow planet pocket river saddle sailor salmon " +
	"shadow silver spider temple thunder ticket timber tunnel valley velvet violin window winter")

// switchWords are three words of a message or a question, one of which has a
// meaning.
func switchWords(random *rand.Rand) string {
	const syllables = "babidobucadecofudagigolehamikonupartusevo"
	words := []string{switchNouns[random.IntN(len(switchNouns))]}
	for range 2 {
		i, j := 2*random.IntN(len(syllables)/2), 2*random.IntN(len(syllables)/2)
		words = append(words, syllables[i:i+2]+syllables[j:j+2])
	}
	return strings.Join(words, " ")
}

// switchMark tells messages from questions.
const switchMark = "message-"

func (w *switching) fill() {
	w.t.Helper()
	c := w.reach()
	defer c.close()
	random := rand.New(rand.NewPCG(7, 7))
	var turns []*recalldv1.NewTurn
	for i := range w.turns {
		words := []string{switchMark + strconv.Itoa(i)}
		for range 4 {
			words = append(words, switchWords(random))
		}
		turns = append(turns, &recalldv1.NewTurn{
			SessionId: fmt.Sprint("s", i/50), TurnId: strconv.Itoa(i), Status: recalldv1.TurnStatus_TURN_STATUS_FINISHED,
			Messages: []*recalldv1.NewMessage{{Id: strconv.Itoa(i), Kind: recalldv1.Kind_KIND_USER, Speaker: "Ines", Text: []byte(strings.Join(words, " "))}},
		})
		if len(turns) == 100 || i == w.turns-1 {
			if _, err := c.memories.Append(w.t.Context(), &recalldv1.AppendRequest{Memory: switchRef, Turns: turns}); err != nil {
				w.t.Fatal(err)
			}
			turns = nil
		}
	}
}

func switchQuery(i int) string {
	return switchWords(rand.New(rand.NewPCG(uint64(i), 8)))
}

// vector is what the fake models say.
func (w *switching) vector(model, text string) []float32 {
	model = strings.TrimSuffix(strings.TrimPrefix(model, "model-"), ":latest")
	if strings.Contains(text, switchMark) {
		w.mu.Lock()
		w.read[model]++
		w.mu.Unlock()
	}
	v := llmtest.Vector(text, switchDimensions)
	if model == "b" {
		slices.Reverse(v)
	}
	return v
}

func (w *switching) readBy(model string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.read[model]
}

func (w *switching) clear() {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.read)
}

// start starts a server with a model.
func (w *switching) start(model string) {
	w.t.Helper()
	embedder := model
	if model != builtIn {
		embedder = "ollama:model-" + model
	}
	w.model.Store(model)
	w.cmd, w.wait = w.p.serve("--embed", embedder, "--consolidate", "off", "--maintain", "off")
	w.life.Add(1)
}

func (w *switching) stop() {
	w.t.Helper()
	w.life.Add(1)
	w.p.run("stop").want(w.t, exitDone)
	w.wait()
}

// kill ends the server as the kernel would that is out of memory.
func (w *switching) kill(model string) {
	w.t.Helper()
	w.t.Logf("killed with %q after it read %d of %d messages", model, w.readBy(model), w.turns)
	w.life.Add(1)
	if err := w.cmd.Process.Kill(); err != nil {
		w.t.Fatal(err)
	}
	w.wait()
}

func (w *switching) reach() *client {
	w.t.Helper()
	c, err := (&app{root: w.p.root}).reach(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// switchPatience bounds what takes longest.
const switchPatience = 5 * time.Minute

// awaitRead waits until a model has been sent so many messages.
func (w *switching) awaitRead(model string, n int) {
	w.t.Helper()
	for until := time.Now().Add(switchPatience); w.readBy(model) < n; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			w.t.Fatalf("%s has read %d messages, not %d", model, w.readBy(model), n)
		}
	}
}

// finish waits until the server answers by the meaning of all messages with a
// model, and has let go of the others' vectors.
func (w *switching) finish(model string) {
	w.t.Helper()
	began := time.Now()
	c := w.reach()
	defer c.close()
	for until := began.Add(switchPatience); ; time.Sleep(5 * time.Millisecond) {
		resp, err := c.recall.Recall(w.t.Context(), w.request(0))
		if err != nil {
			w.t.Fatal(err)
		}
		state, err := c.admin.Status(w.t.Context(), &recalldv1.StatusRequest{Memory: switchRef})
		if err != nil {
			w.t.Fatal(err)
		}
		m := state.GetMemories()[0]
		if resp.GetSnapshot().GetEmbedded() == uint64(w.turns) && m.GetEmbeddingNextModel() == "" && strings.Contains(m.GetEmbeddingModel(), "model-"+model) &&
			slices.Equal(w.buckets(true), []string{model}) {
			break
		}
		if time.Now().After(until) {
			w.t.Fatalf("not complete: %v", m)
		}
	}
	// Those who ask now are answered with all there is.
	for seen := w.whole.Load(); w.loaded.Load() && w.whole.Load() < seen+switchQueries && !w.t.Failed(); {
		time.Sleep(time.Millisecond)
	}
	w.t.Logf("complete with %q %v after the start, %d messages read in all", model, time.Since(began).Round(10*time.Millisecond), w.readBy(model))
}

func (w *switching) readAtMost(model string, n int) {
	w.t.Helper()
	if got := w.readBy(model); got > n {
		w.t.Errorf("%s was sent %d messages, want at most %d", model, got, n)
	}
}

// kept checks of which models there are vectors on disk. No server runs.
func (w *switching) kept(models ...string) {
	w.t.Helper()
	if got := w.buckets(false); !slices.Equal(got, models) {
		w.t.Errorf("vectors of %q are kept, want %q", got, models)
	}
}

// buckets lists the models of which there are vectors, of one that runs in a
// copy, and is nil where that cannot be read.
func (w *switching) buckets(running bool) (models []string) {
	w.t.Helper()
	defer func() {
		if recover() != nil {
			models = nil // it was copied while it was written
		}
	}()
	path := w.vectors()
	if running {
		b, err := os.ReadFile(path)
		if err != nil {
			w.t.Fatal(err)
		}
		path = filepath.Join(w.t.TempDir(), "copy")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			w.t.Fatal(err)
		}
	}
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return nil
	}
	defer db.Close()
	_ = db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(name []byte, _ *bbolt.Bucket) error {
			_, model, _ := strings.Cut(string(name), "model-")
			model, _, _ = strings.Cut(model, " ")
			models = append(models, model)
			return nil
		})
	})
	return models
}

// vectors is the file of vectors.
func (w *switching) vectors() string {
	w.t.Helper()
	found, err := filepath.Glob(filepath.Join(w.p.root, "memories", "*", "views", "vectors.db"))
	if err != nil || len(found) != 1 {
		w.t.Fatalf("files of vectors: %q, %v", found, err)
	}
	return found[0]
}

func (w *switching) request(i int) *recalldv1.RecallRequest {
	return &recalldv1.RecallRequest{Memory: switchRef, Query: switchQuery(i), Relevance: recalldv1.Relevance_RELEVANCE_ALWAYS, Limit: 5}
}

// switchAnswer gives the scores of an answer by message, and what became of
// meaning in it.
func switchAnswer(resp *recalldv1.RecallResponse) (scores map[string]float64, meaning recalldv1.Outcome) {
	scores = map[string]float64{}
	for _, p := range resp.GetPassages() {
		scores[p.GetMessageId()] = p.GetScore()
	}
	for _, s := range resp.GetSources() {
		if s.GetSource() == "meaning" {
			meaning = s.GetOutcome()
		}
	}
	return scores, meaning
}

// alike compares answers: sums in another order differ in the last bits.
func alike(a, b map[string]float64) bool {
	return maps.EqualFunc(a, b, func(x, y float64) bool { return math.Abs(x-y) < 1e-4 })
}

// answers asks all questions of some sources, or all, of a server on which nobody
// else is.
func (w *switching) answers(sources ...recalldv1.Source) []map[string]float64 {
	w.t.Helper()
	want := recalldv1.Outcome_OUTCOME_USED
	if len(sources) > 0 {
		want = recalldv1.Outcome_OUTCOME_OFF
	}
	c := w.reach()
	defer c.close()
	var list []map[string]float64
	for i := range switchQueries {
		request := w.request(i)
		request.Sources = sources
		resp, err := c.recall.Recall(w.t.Context(), request)
		if err != nil {
			w.t.Fatal(err)
		}
		scores, meaning := switchAnswer(resp)
		if meaning != want || len(scores) == 0 {
			w.t.Fatalf("question %d: meaning %v, want %v; %d passages", i, meaning, want, len(scores))
		}
		list = append(list, scores)
	}
	return list
}

// differ makes sure that answers tell how they were made.
func (w *switching) differ(a, b []map[string]float64) {
	w.t.Helper()
	same := 0
	for i := range a {
		if alike(a[i], b[i]) {
			same++
		}
	}
	if same > switchQueries/4 {
		w.t.Fatalf("%d of %d answers are the same with meaning and without", same, switchQueries)
	}
}

// load has callers ask until the function that it returns is called.
func (w *switching) load() (end func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	var callers sync.WaitGroup
	w.loaded.Store(true)
	for n := range switchCallers {
		callers.Go(func() {
			for i := n; ctx.Err() == nil; i += switchCallers {
				w.call(ctx, i%switchQueries)
			}
		})
	}
	return func() {
		cancel()
		callers.Wait()
	}
}

// call asks one question until it is answered. It may be tried again only if the
// server was down, or went down.
func (w *switching) call(ctx context.Context, i int) {
	for ctx.Err() == nil {
		life := w.life.Load()
		model := w.model.Load().(string)
		resp, err := w.ask(ctx, i)
		same := w.life.Load() == life
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			w.asked.Add(1)
			if same && life%2 == 1 {
				w.check(i, model, resp)
			}
			return
		case same && life%2 == 1:
			w.t.Errorf("a recall failed while the server was up: %v (%v)", err, status.Code(err))
			return
		}
		w.retried.Add(1)
		time.Sleep(5 * time.Millisecond)
	}
}

// ask asks on a connection of its own, as a harness's hook does.
func (w *switching) ask(ctx context.Context, i int) (*recalldv1.RecallResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, switchDeadline)
	defer cancel()
	c, err := (&app{root: w.p.root}).reach(ctx)
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	defer c.close()
	return c.recall.Recall(ctx, w.request(i))
}

// check looks whether an answer is one by words alone, or one by the meaning of
// one model alone.
func (w *switching) check(i int, model string, resp *recalldv1.RecallResponse) {
	scores, meaning := switchAnswer(resp)
	embedded := resp.GetSnapshot().GetEmbedded()
	switch meaning {
	case recalldv1.Outcome_OUTCOME_USED:
		if model == builtIn {
			if !alike(scores, w.wantBuiltIn[i]) {
				w.t.Errorf("question %d with the built-in model: %v, want %v", i, scores, w.wantBuiltIn[i])
			}
			return
		}
		w.meant.Add(1)
		if embedded < uint64(w.turns) {
			return // the newest speak by words alone
		}
		w.whole.Add(1)
		if !alike(scores, w.wantMeant[i]) {
			w.t.Errorf("question %d with the meaning of %q: %v, want %v", i, model, scores, w.wantMeant[i])
		}
	case recalldv1.Outcome_OUTCOME_OFF, recalldv1.Outcome_OUTCOME_REBUILDING, recalldv1.Outcome_OUTCOME_SKIPPED, recalldv1.Outcome_OUTCOME_LATE:
		if !alike(scores, w.want[i]) {
			w.t.Errorf("question %d with meaning %v: %v, want %v", i, meaning, scores, w.want[i])
		}
	default:
		w.t.Errorf("meaning is %v", meaning)
	}
}
