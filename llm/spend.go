package llm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// chargeTime is how long the keeping of accounts may take after a call, beyond
// the end of the caller's context: what was spent was spent.
const chargeTime = 2 * time.Second

// maxTokens is the most that one call is charged; more is a server's fantasy,
// and sums must not overflow.
const maxTokens = 1 << 40

// bytesPerToken turns bytes into tokens where a server reports none. Four is
// the usual figure for English; it need not be right, only not zero.
const bytesPerToken = 4

// A purse checks and keeps what calls cost.
type purse struct {
	meter    Meter
	own, all uint64 // daily caps; 0 is none
	model    string

	mu sync.Mutex // guards debts
	// debts are charges that the meter failed to take, by account and purpose:
	// they are offered again before the next call.
	debts map[debt]Use
}

type debt struct{ account, purpose string }

// allow reports with an error if a cap is spent, or if there are caps and the
// meter cannot say.
func (p *purse) allow(ctx context.Context, account string) error {
	if p.meter == nil {
		return nil
	}
	unpaid := p.settle(ctx)
	if p.own == 0 && p.all == 0 {
		return nil
	}
	if unpaid != nil {
		return p.unknown(ctx)
	}
	own, all, err := p.meter.Spent(ctx, account)
	switch {
	case err != nil:
		return p.unknown(ctx)
	case p.own > 0 && own >= p.own:
		return &skipped{"daily budget of this memory is spent"}
	case p.all > 0 && all >= p.all:
		return &skipped{"daily budget of all memories is spent"}
	}
	return nil
}

// unknown is the error of a call whose budget cannot be told.
func (p *purse) unknown(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return &skipped{"what was spent today cannot be told, and there is a budget"}
}

// charge keeps the cost of a call, also of one whose caller has left.
func (p *purse) charge(ctx context.Context, account string, u Use) {
	if p.meter == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), chargeTime)
	defer cancel()
	u.Model = p.model
	if err := p.meter.Charge(ctx, account, u); err != nil {
		p.owe(account, u)
	}
}

func (p *purse) owe(account string, u Use) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.debts == nil {
		p.debts = make(map[debt]Use)
	}
	k := debt{account, u.Purpose}
	old := p.debts[k]
	u.Calls += old.Calls
	u.Tokens += old.Tokens
	u.Took += old.Took
	p.debts[k] = u
}

// settle offers the meter what is owed.
func (p *purse) settle(ctx context.Context) error {
	p.mu.Lock()
	debts := p.debts
	p.debts = nil
	p.mu.Unlock()
	var errs []error
	for k, u := range debts {
		if err := p.meter.Charge(ctx, k.account, u); err != nil {
			p.owe(k.account, u)
			errs = append(errs, fmt.Errorf("charge %s: %w", u.Purpose, err))
		}
	}
	return errors.Join(errs...)
}
