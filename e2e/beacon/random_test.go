//go:build linux

package beacon

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"switchboard/e2e/model"
	"switchboard/e2e/rig"
	"switchboard/internal/lifecycle"
)

// soak is how much the long form does: SOAK times as much as one, or nothing.
func soak() int {
	n, _ := strconv.Atoi(os.Getenv("SOAK")) // unset means no soak
	return max(n, 0)
}

// Many Pis at once under random prompts, steers, follow-ups, aborts and
// compactions: at the end what a subscriber heard last is what Pi says.
func TestRandom(t *testing.T) {
	t.Parallel()
	pis, rounds := 5, 12
	if n := soak(); n > 0 {
		pis, rounds = 20, n
	}
	for seed := range pis {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(uint64(seed), 11))
			w := rig.NewWorld(t)
			w.Settings(map[string]any{
				"compaction": map[string]any{"reserveTokens": 4000, "keepRecentTokens": 2000},
				"retry":      map[string]any{"baseDelayMs": 30, "maxRetries": 2},
			})
			p := start(t, w, rig.Options{Args: []string{"--model", "rig/scripted-small"}})
			sub := subscribe(t, w, p.PID)
			for range rounds {
				w.Model.Script("main", randomTurn(rnd), randomTurn(rnd))
				w.Model.ScriptSummary("main", randomSummary(rnd))
				what := randomCommand(rnd)
				t.Logf("%v", what)
				p.Send(what)
				time.Sleep(time.Duration(rnd.IntN(120)) * time.Millisecond)
			}
			// At rest, perhaps with a text in its queue that an abort left there:
			// what was sent may still be on its way to a Pi that is idle.
			var pi opinion
			rig.Eventually(t, rig.Watchdog, "Pi to come to rest", func() bool {
				before := ask(t, p)
				time.Sleep(quietTime)
				pi = ask(t, p)
				return before.Idle && pi == before
			})
			// The last word comes at once, but for the time that it travels.
			rig.Eventually(t, rig.Watchdog, "idle from the subscription", func() bool {
				docs := sub.documents()
				return len(docs) == 0 || docs[len(docs)-1].State == lifecycle.Idle
			})
			heard := sub.documents()
			settled(t, w, p, heard, pi)
			for i := 1; i < len(heard); i++ {
				if heard[i].State == heard[i-1].State && heard[i].State != lifecycle.Compacting {
					t.Errorf("%s twice in %s", say(heard[i]), list(heard))
				}
			}
			if got, most := idles(heard), pi.Spans; got > most {
				t.Errorf("idle %d times, but Pi only %d: %s", got, most, list(heard))
			}
			t.Logf("%d transitions", len(heard))
		})
	}
}

func randomTurn(rnd *rand.Rand) model.Step {
	s := model.Step{Delay: time.Duration(rnd.IntN(60)) * time.Millisecond}
	switch rnd.IntN(10) {
	case 0:
		s.Status, s.Message = 500, "boom"
	case 1:
		s.Status, s.Message = 400, "bad request"
	case 2:
		s.Status, s.Message = overflow.Status, overflow.Message
	case 3:
		s.Drop = true
	case 4:
		s.Text, s.Usage = "b", full
	case 5, 6:
		s.Tools = bash(fmt.Sprintf("sleep 0.%d", rnd.IntN(2))).Tools
	case 7:
		s.Text = long
	default:
		s.Text, s.Chunks, s.ChunkDelay = "streamed slowly", 5, 10*time.Millisecond
	}
	return s
}

func randomSummary(rnd *rand.Rand) model.Step {
	s := summary
	s.Delay = time.Duration(rnd.IntN(80)) * time.Millisecond
	if rnd.IntN(4) == 0 {
		s = failing(400, "bad request")
	}
	return s
}

func randomCommand(rnd *rand.Rand) map[string]any {
	switch rnd.IntN(10) {
	case 0, 1:
		return map[string]any{"type": "abort"}
	case 2:
		return map[string]any{"type": "compact"}
	case 3:
		return map[string]any{"type": "steer", "message": "steer"}
	case 4:
		return map[string]any{"type": "follow_up", "message": "follow up"}
	case 5:
		return map[string]any{"type": "prompt", "message": "/probe tree sum"}
	}
	return map[string]any{"type": "prompt", "message": "work", "streamingBehavior": "steer"}
}
