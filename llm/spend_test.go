package llm_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"recalld/llm"
	"recalld/llm/llmtest"
)

func TestCaps(t *testing.T) {
	const own, all = "daily budget of this memory is spent", "daily budget of all memories is spent"
	tests := []struct {
		name    string
		options llm.Options
		spent   map[string]uint64
		want    string
	}{
		{"no caps", llm.Options{}, map[string]uint64{"a": 1 << 50}, ""},
		{"below both", llm.Options{DailyTokens: 100, DailyTokensAll: 200}, map[string]uint64{"a": 99, "b": 100}, ""},
		{"its own is spent", llm.Options{DailyTokens: 100}, map[string]uint64{"a": 100}, own},
		{"another's is spent", llm.Options{DailyTokens: 100}, map[string]uint64{"b": 1000}, ""},
		{"that of all is spent", llm.Options{DailyTokensAll: 100}, map[string]uint64{"b": 100}, all},
		{"both are spent", llm.Options{DailyTokens: 1, DailyTokensAll: 1}, map[string]uint64{"a": 1}, own},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := llmtest.NewPipe(t, llmtest.Options{})
				tt.options.Meter = &ledger{tokens: tt.spent}
				c := client(t, s, llm.Ollama, tt.options).For("a")
				_, err := c.Chat(t.Context(), question)
				if got := skip(err); got != tt.want || (err == nil) != (tt.want == "") {
					t.Errorf("error %v, want it skipped because %q", err, tt.want)
				}
				if asked := s.Count() > 0; asked != (tt.want == "") {
					t.Errorf("the server was asked: %v", asked)
				}
			})
		})
	}
}

// TestTheCapCannotBeEvaded checks that a server which reports no tokens, fails
// or lies does not get an endless budget.
func TestTheCapCannotBeEvaded(t *testing.T) {
	for _, p := range providers {
		for _, b := range []llmtest.Behaviour{
			llmtest.NoUsage, llmtest.WildUsage, llmtest.Cut, llmtest.OnlyThinking, llmtest.BrokenJSON, llmtest.Endless, llmtest.Disconnect,
			llmtest.HTML, llmtest.Silent, llmtest.Null, llmtest.EmptyBody,
		} {
			t.Run(string(p)+" "+string(b), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := llmtest.NewPipe(t, llmtest.Options{})
					c := client(t, s, p, llm.Options{Meter: &ledger{}, DailyTokens: 1}).For("a")
					s.Be(b)
					ctx, cancel := context.WithTimeout(t.Context(), 1e9)
					defer cancel()
					c.Chat(ctx, question)
					if _, err := c.Chat(t.Context(), question); skip(err) != "daily budget of this memory is spent" || s.Count() != 1 {
						t.Errorf("the second call: error %v, %d calls", err, s.Count())
					}
				})
			})
		}
	}
}

// TestMeterDown checks that without a meter that works nothing is spent where
// there is a cap, and that charges are made up for.
func TestMeterDown(t *testing.T) {
	down := errors.New("no space left")
	for _, capped := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := llmtest.NewPipe(t, llmtest.Options{})
			meter := &ledger{}
			o := llm.Options{Meter: meter}
			if capped {
				o.DailyTokensAll = 1000
			}
			c := client(t, s, llm.Ollama, o)
			meter.fail(down)
			for range 2 {
				_, err := c.For("a").Chat(t.Context(), question)
				if (err == nil) == capped || (skip(err) != "") != capped {
					t.Errorf("there is a cap: %v; error %v", capped, err)
				}
			}
			if capped != (s.Count() == 0) {
				t.Errorf("%d calls were made", s.Count())
			}
			meter.fail(nil)
			if _, err := c.For("b").Chat(t.Context(), question); err != nil {
				t.Fatal(err)
			}
			var calls uint64
			for _, u := range meter.uses {
				calls += u.Calls
			}
			if calls != uint64(s.Count()) {
				t.Errorf("%d calls were made, %d charged", s.Count(), calls)
			}
			if !capped && (meter.tokens["a"] != 2*meter.tokens["b"] || len(meter.uses) != 2) {
				t.Errorf("charged %v, %+v", meter.tokens, meter.uses)
			}
		})
	}
	// Someone who has left does not hear of budgets.
	synctest.Test(t, func(t *testing.T) {
		s := llmtest.NewPipe(t, llmtest.Options{})
		c := client(t, s, llm.Ollama, llm.Options{Meter: stuck{}, DailyTokens: 1})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Chat(ctx, question); !errors.Is(err, context.DeadlineExceeded) || skip(err) != "" {
			t.Errorf("error %v", err)
		}
		if n := c.State().Failures; n != 0 {
			t.Errorf("the server was not asked, and failed %d times", n)
		}
		// Without a cap a meter that is stuck holds an answer up for two seconds.
		c = client(t, s, llm.Ollama, llm.Options{Meter: stuck{}})
		began := time.Now()
		if _, err := c.Chat(t.Context(), question); err != nil || time.Since(began) != 2*time.Second {
			t.Errorf("it took %v, error %v", time.Since(began), err)
		}
	})
	// The meter fails between the check and the charge.
	synctest.Test(t, func(t *testing.T) {
		meter := &ledger{}
		s := llmtest.NewPipe(t, llmtest.Options{Answer: func(llmtest.Call) string {
			meter.fail(down)
			return `{}`
		}})
		c := client(t, s, llm.Ollama, llm.Options{Meter: meter, DailyTokens: 1})
		if _, err := c.Chat(t.Context(), question); err != nil {
			t.Errorf("the answer is there: %v", err)
		}
		meter.fail(nil)
		if _, err := c.Chat(t.Context(), question); skip(err) != "daily budget of this memory is spent" {
			t.Errorf("the charge is not made up for: %v", err)
		}
	})
}

// stuck is a meter that does not answer.
type stuck struct{}

func (stuck) Spent(ctx context.Context, _ string) (own, all uint64, err error) {
	<-ctx.Done()
	return 0, 0, ctx.Err()
}

func (stuck) Charge(ctx context.Context, _ string, _ llm.Use) error {
	<-ctx.Done()
	return ctx.Err()
}
