package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// A Reservation keeps a memory and its sessions in place for an Append under
// way. What it made is kept once turns rest on it; else its end takes that away.
//
// The catalog must name a session before its turns are stored, so that no other
// memory gets turns of it. What an Append puts there is therefore marked as not
// kept: whatever is marked so and has no turn, as after a kill, stands in
// nobody's way. [Store.Bind] and [Store.Ensure] make what is kept.
type Reservation struct {
	store    *Store
	memory   string
	sessions []string
}

// pending counts what Appends under way rest on. Store.making guards it.
type pending struct {
	memories map[string]int
	sessions map[string]*pendingSession
}

type pendingSession struct {
	calls  int
	fresh  bool // one of them made the binding
	stored bool // one of them stored a turn
}

// Reserve prepares an Append of these sessions to the memory id, which is made
// if it is new and k is its key; a zero k makes none. All sessions are bound,
// or none: the error wraps ErrExists when one belongs to another memory,
// ErrNotFound when there is no such memory, ErrReadOnly or ErrFull. The session
// "notes" is bound to no memory, every one has its own. The caller must call
// Release.
func (s *Store) Reserve(ctx context.Context, id string, k MemoryKey, sessions []string) (*Reservation, error) {
	bindable, err := checkSessions(sessions)
	if err != nil {
		return nil, err
	}
	s.making.Lock()
	defer s.making.Unlock()
	r := &Reservation{store: s, memory: id, sessions: bindable}
	fresh, err := s.prepare(ctx, r, k)
	if err != nil {
		return nil, fmt.Errorf("reserve memory: %w", err)
	}
	s.pending.add(r, fresh)
	return r, nil
}

// checkSessions returns the sessions that are bound to a memory, each once.
func checkSessions(sessions []string) ([]string, error) {
	var list []string
	seen := map[string]bool{NotesSession: true}
	for _, session := range sessions {
		if err := checkName("session_id", session, true); err != nil {
			return nil, err
		}
		if !seen[session] {
			seen[session] = true
			list = append(list, session)
		}
	}
	return list, nil
}

// prepare makes and binds what is missing and returns the sessions it bound.
// Everything that can be refused is refused before a folder is made.
func (s *Store) prepare(ctx context.Context, r *Reservation, k MemoryKey) (fresh []string, err error) {
	fresh, err = s.unbound(ctx, r.memory, r.sessions)
	if err != nil {
		return nil, err
	}
	known, err := s.exists(ctx, r.memory)
	switch {
	case err != nil:
		return nil, err
	case !known && (k == MemoryKey{} || MemoryID(k) != r.memory):
		return nil, fmt.Errorf("memory %q: %w", r.memory, ErrNotFound)
	case !known:
		if err := s.makeMemory(ctx, k, false); err != nil {
			return nil, err
		}
	}
	if len(fresh) == 0 {
		return nil, nil
	}
	if s.readOnly {
		return nil, ErrReadOnly
	}
	err = s.inTransaction(ctx, func(tx *sql.Tx) error {
		for _, session := range fresh {
			if _, err := bindSession(ctx, tx, r.memory, session, false); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil && !known {
		_, dropErr := s.drop(context.WithoutCancel(ctx), r.memory)
		err = errors.Join(err, dropErr)
	}
	return fresh, err
}

// unbound returns the sessions that are bound to no memory. Bindings to others
// that nothing rests on are taken away.
func (s *Store) unbound(ctx context.Context, id string, sessions []string) ([]string, error) {
	rows, err := s.reads.QueryContext(ctx, "SELECT session, memory FROM binding WHERE session IN (SELECT value FROM json_each(?))", jsonList(sessions))
	owners, err := collectPairs(rows, err)
	if err != nil {
		return nil, fmt.Errorf("look up sessions: %w", translate(catalogName, err))
	}
	var list []string
	for _, session := range sessions {
		owner, bound := owners[session]
		switch {
		case owner == id:
		case !bound:
			list = append(list, session)
		default:
			gone, err := s.unbindAbandoned(ctx, owner, session)
			if err != nil {
				return nil, err
			}
			if !gone {
				return nil, fmt.Errorf("session %q belongs to another memory: %w", session, ErrExists)
			}
			list = append(list, session)
		}
	}
	return list, nil
}

// collectPairs reads rows of two texts, and closes them.
func collectPairs(rows *sql.Rows, err error) (map[string]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	pairs := map[string]string{}
	for rows.Next() {
		var a, b string
		if err := rows.Scan(&a, &b); err != nil {
			return nil, err
		}
		pairs[a] = b
	}
	return pairs, rows.Err()
}

// unbindAbandoned takes away the binding of a session that an Append left which
// was killed before it stored a turn. It reports whether it did.
func (s *Store) unbindAbandoned(ctx context.Context, owner, session string) (bool, error) {
	if s.readOnly || s.pending.sessions[session] != nil {
		return false, nil
	}
	var kept bool
	err := s.reads.QueryRowContext(ctx, "SELECT kept FROM binding WHERE session = ? AND memory = ?", session, owner).Scan(&kept)
	if err != nil {
		return false, fmt.Errorf("look up session: %w", translate(catalogName, err))
	}
	if kept {
		return false, nil
	}
	with, err := s.withTurns(ctx, owner, []string{session})
	if err != nil || with[session] {
		return false, nil // what cannot be looked at stays bound
	}
	return true, s.unbind(ctx, owner, []string{session})
}

func (s *Store) unbind(ctx context.Context, id string, sessions []string) error {
	const remove = "DELETE FROM binding WHERE session IN (SELECT value FROM json_each(?)) AND memory = ? AND kept = 0"
	if _, err := s.writes.ExecContext(ctx, remove, jsonList(sessions), id); err != nil {
		return fmt.Errorf("unbind sessions: %w", translate(catalogName, err))
	}
	return nil
}

func (p *pending) add(r *Reservation, fresh []string) {
	p.memories[r.memory]++
	for _, session := range r.sessions {
		if p.sessions[session] == nil {
			p.sessions[session] = new(pendingSession)
		}
		p.sessions[session].calls++
	}
	for _, session := range fresh {
		p.sessions[session].fresh = true
	}
}

// end is the opposite of add. It returns the sessions that Appends bound of
// which none said that it stored a turn, once the last of them has ended.
func (p *pending) end(r *Reservation, stored []string) (doubtful []string) {
	if p.memories[r.memory]--; p.memories[r.memory] == 0 {
		delete(p.memories, r.memory)
	}
	for _, session := range stored {
		if of := p.sessions[session]; of != nil {
			of.stored = true
		}
	}
	for _, session := range r.sessions {
		of := p.sessions[session]
		if of.calls--; of.calls > 0 {
			continue
		}
		delete(p.sessions, session)
		if of.fresh && !of.stored {
			doubtful = append(doubtful, session)
		}
	}
	return doubtful
}

// Memory returns the id of the memory.
func (r *Reservation) Memory() string { return r.memory }

// Release ends the reservation; stored names the sessions that got a turn, or
// had it. Sessions that were bound for it and have no turn are unbound again,
// unless another Append rests on them. A memory without turns stays, see
// [Store.Drop]. It must be called once.
func (r *Reservation) Release(ctx context.Context, stored []string) error {
	s := r.store
	s.making.Lock()
	defer s.making.Unlock()
	doubtful := s.pending.end(r, stored)
	if len(doubtful) == 0 || s.readOnly {
		return nil
	}
	with, err := s.withTurns(ctx, r.memory, doubtful)
	if err != nil {
		return fmt.Errorf("release memory: %w", err)
	}
	var without []string
	for _, session := range doubtful {
		if !with[session] {
			without = append(without, session)
		}
	}
	if len(without) == 0 {
		return nil
	}
	return s.unbind(ctx, r.memory, without)
}

// Drop removes the memory id with its folder if an Append made it and nothing
// rests on it: no turn ever, no name, no session and no Append under way. It
// reports whether it did. The memory must not be open.
func (s *Store) Drop(ctx context.Context, id string) (bool, error) {
	s.making.Lock()
	defer s.making.Unlock()
	return s.drop(ctx, id)
}

// drop is Drop for a caller that holds making.
func (s *Store) drop(ctx context.Context, id string) (bool, error) {
	if s.readOnly || s.pending.memories[id] > 0 || !isMemoryID(id) {
		return false, nil
	}
	const unused = `id = ? AND kept = 0 AND name = ''
		AND NOT EXISTS (SELECT 1 FROM alias WHERE memory = memory.id)
		AND NOT EXISTS (SELECT 1 FROM binding WHERE binding.memory = memory.id)`
	var one int
	err := s.reads.QueryRowContext(ctx, "SELECT 1 FROM memory WHERE "+unused, id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	var used bool
	if err == nil {
		used, err = s.everHeldTurns(ctx, id)
	}
	if err == nil && !used {
		// The catalog comes first: it never names what is not there.
		_, err = s.writes.ExecContext(ctx, "DELETE FROM memory WHERE "+unused, id)
	}
	if err != nil || used {
		return false, translateDrop(err)
	}
	if err := os.RemoveAll(s.Folder(id)); err != nil {
		return true, translateDrop(err)
	}
	return true, translateDrop(syncFolder(filepath.Dir(s.Folder(id))))
}

func translateDrop(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("drop empty memory: %w", translate(catalogName, err))
}

// lookInto opens the file of a memory, which may be open elsewhere in this
// process, for one look.
func (s *Store) lookInto(id string, look func(*sql.DB) error) error {
	m := &Memory{id: id, path: filepath.Join(s.Folder(id), ledgerName)}
	if err := m.checkFiles(s.Folder(id)); err != nil {
		return err
	}
	db, err := openSQLite(m.path, reading)
	if err != nil {
		return err
	}
	defer db.Close()
	return m.translate(look(db))
}

// withTurns returns which of these sessions of a memory have turns.
func (s *Store) withTurns(ctx context.Context, id string, sessions []string) (map[string]bool, error) {
	with := map[string]bool{}
	err := s.lookInto(id, func(db *sql.DB) error {
		rows, err := db.QueryContext(ctx, "SELECT id FROM session WHERE turns > 0 AND id IN (SELECT value FROM json_each(?))", jsonList(sessions))
		list, err := collect(rows, err)
		for _, session := range list {
			with[session] = true
		}
		return err
	})
	return with, err
}

// everHeldTurns reports whether a memory has or had turns.
func (s *Store) everHeldTurns(ctx context.Context, id string) (held bool, err error) {
	err = s.lookInto(id, func(db *sql.DB) error {
		return db.QueryRowContext(ctx, "SELECT last_turn > 0 OR EXISTS (SELECT 1 FROM turn) OR EXISTS (SELECT 1 FROM forgotten) FROM counters").Scan(&held)
	})
	return held, err
}

// isLeftover reports whether a folder that the catalog does not know is what a
// kill left of a memory that was being made or dropped: a sound file that never
// held a turn. The next Append to its key takes it up.
func (s *Store) isLeftover(ctx context.Context, id string) bool {
	if !isMemoryID(id) {
		return false
	}
	held, err := s.everHeldTurns(ctx, id)
	return err == nil && !held
}
