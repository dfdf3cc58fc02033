package ledger

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"
)

// A MemoryInfo is what the catalog knows of a memory.
type MemoryInfo struct {
	ID      string
	Key     MemoryKey
	Name    string   // shown to people; may be empty
	Aliases []string // sorted
	Created time.Time
}

// A Binding ties a session to a memory and gives the memory names.
type Binding struct {
	Session string // empty: only names are set
	Key     MemoryKey
	Name    string   // empty leaves it as it is
	Aliases []string // added to those it has
}

// exists reports whether the catalog has the memory.
func (s *Store) exists(ctx context.Context, id string) (bool, error) {
	var one int
	err := s.reads.QueryRowContext(ctx, "SELECT 1 FROM memory WHERE id = ?", id).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up memory: %w", translate(catalogName, err))
	}
	return true, nil
}

// Resolve returns the id of the memory that ref names: an id, an alias, or a
// display name that only one memory has. The error wraps ErrNotFound.
func (s *Store) Resolve(ctx context.Context, ref string) (string, error) {
	if err := checkName("memory.id", ref, true); err != nil {
		return "", err
	}
	rows, err := s.reads.QueryContext(ctx, `
		SELECT id FROM memory WHERE id = ?1
		UNION SELECT memory FROM alias WHERE alias = ?1`, ref)
	ids, err := collect(rows, err)
	if err == nil && len(ids) == 0 {
		rows, err = s.reads.QueryContext(ctx, "SELECT id FROM memory WHERE name = ? LIMIT 2", ref)
		ids, err = collect(rows, err)
	}
	switch {
	case err != nil:
		return "", fmt.Errorf("resolve memory: %w", translate(catalogName, err))
	case len(ids) == 0:
		return "", fmt.Errorf("memory %q: %w", ref, ErrNotFound)
	case len(ids) > 1:
		return "", &FieldError{Field: "memory.id", What: "is the name of several memories"}
	}
	return ids[0], nil
}

// collect reads rows of one text, and closes them.
func collect(rows *sql.Rows, err error) ([]string, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, rows.Err()
}

// SessionMemory returns the id of the memory a session is bound to. The error
// wraps ErrNotFound when it is bound to none.
func (s *Store) SessionMemory(ctx context.Context, session string) (string, error) {
	if err := checkName("session_id", session, true); err != nil {
		return "", err
	}
	var id string
	err := s.reads.QueryRowContext(ctx, "SELECT memory FROM binding WHERE session = ?", session).Scan(&id)
	if err != nil {
		return "", fmt.Errorf("look up session: %w", notFound(translate(catalogName, err), "binding"))
	}
	return id, nil
}

// Bind binds a session to the memory of b.Key, which it makes when it is new,
// and gives the memory names. It returns the memory's id and whether this call
// made the binding. The error wraps ErrExists when the session or an alias
// belongs to another memory; nothing is changed then.
func (s *Store) Bind(ctx context.Context, b Binding) (id string, bound bool, err error) {
	if err := checkBinding(b); err != nil {
		return "", false, err
	}
	id = MemoryID(b.Key)
	s.making.Lock()
	defer s.making.Unlock()
	if b.Session != "" && b.Session != NotesSession {
		if _, err := s.unbound(ctx, id, []string{b.Session}); err != nil {
			return "", false, fmt.Errorf("bind: %w", err)
		}
	}
	if err := free(ctx, s.reads, id, b); err != nil { // before a folder is made for nothing
		return "", false, fmt.Errorf("bind: %w", translate(catalogName, err))
	}
	if err := s.makeMemory(ctx, b.Key, true); err != nil {
		return "", false, fmt.Errorf("bind: %w", err)
	}
	if s.readOnly {
		return id, false, s.nothingToWrite(ctx, id, b)
	}
	err = s.inTransaction(ctx, func(tx *sql.Tx) error {
		if err := free(ctx, tx, id, b); err != nil {
			return err
		}
		bound, err = bindSession(ctx, tx, id, b.Session, true)
		if err != nil {
			return err
		}
		return giveNames(ctx, tx, id, b)
	})
	if err != nil {
		return "", false, fmt.Errorf("bind: %w", err)
	}
	return id, bound, nil
}

func checkBinding(b Binding) error {
	if err := checkKey(b.Key); err != nil {
		return err
	}
	if err := checkName("session_id", b.Session, false); err != nil {
		return err
	}
	if err := checkName("display_name", b.Name, false); err != nil {
		return err
	}
	for i, alias := range b.Aliases {
		field := fmt.Sprintf("aliases[%d]", i)
		if err := checkName(field, alias, true); err != nil {
			return err
		}
		if isMemoryID(alias) && alias != MemoryID(b.Key) {
			return &FieldError{Field: field, What: "has the form of another memory's id"}
		}
	}
	return nil
}

// free returns an error wrapping ErrExists if b's session or one of its aliases
// belongs to another memory than id. The error does not say which.
func free(ctx context.Context, q querier, id string, b Binding) error {
	check := func(what, query, arg string) error {
		var owner string
		err := q.QueryRowContext(ctx, query, arg).Scan(&owner)
		if errors.Is(err, sql.ErrNoRows) || err == nil && owner == id {
			return nil
		}
		if err != nil {
			return err
		}
		return fmt.Errorf("%s %q belongs to another memory: %w", what, arg, ErrExists)
	}
	if b.Session != "" && b.Session != NotesSession {
		if err := check("session", "SELECT memory FROM binding WHERE session = ?", b.Session); err != nil {
			return err
		}
	}
	for _, alias := range b.Aliases {
		if err := check("alias", "SELECT memory FROM alias WHERE alias = ?", alias); err != nil {
			return err
		}
	}
	return nil
}

// nothingToWrite lets a Bind that changes nothing succeed on a read-only disk.
func (s *Store) nothingToWrite(ctx context.Context, id string, b Binding) error {
	if b.Session != "" && b.Session != NotesSession {
		if got, err := s.SessionMemory(ctx, b.Session); err != nil || got != id {
			return fmt.Errorf("bind: %w", ErrReadOnly)
		}
	}
	if b.Name != "" || len(b.Aliases) > 0 {
		return fmt.Errorf("bind: %w", ErrReadOnly)
	}
	return nil
}

// bindSession reports whether it made a binding that was not there. One that is
// kept stays even if no turn ever rests on it.
func bindSession(ctx context.Context, tx *sql.Tx, id, session string, kept bool) (bool, error) {
	if session == "" || session == NotesSession {
		return false, nil
	}
	result, err := tx.ExecContext(ctx, "INSERT INTO binding (session, memory, kept) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", session, id, kept)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 && kept {
		_, err = tx.ExecContext(ctx, "UPDATE binding SET kept = 1 WHERE session = ? AND kept = 0", session)
	}
	return n == 1, err
}

func giveNames(ctx context.Context, tx *sql.Tx, id string, b Binding) error {
	if b.Name != "" {
		if _, err := tx.ExecContext(ctx, "UPDATE memory SET name = ? WHERE id = ?", b.Name, id); err != nil {
			return err
		}
	}
	for _, alias := range b.Aliases {
		if alias == id {
			continue
		}
		if _, err := tx.ExecContext(ctx, "INSERT INTO alias (alias, memory) VALUES (?, ?) ON CONFLICT DO NOTHING", alias, id); err != nil {
			return err
		}
	}
	return nil
}

// inTransaction commits what f did to the catalog unless it failed.
func (s *Store) inTransaction(ctx context.Context, f func(*sql.Tx) error) error {
	tx, err := s.writes.BeginTx(ctx, nil)
	if err != nil {
		return translate(catalogName, err)
	}
	defer tx.Rollback() // does nothing after the commit
	if err := f(tx); err != nil {
		return translate(catalogName, err)
	}
	return translate(catalogName, tx.Commit())
}

// List returns all memories, by agent, project. A row that is damaged is left
// out, so that it hides no other; [Store.Verify] names it.
func (s *Store) List(ctx context.Context) ([]MemoryInfo, error) {
	list, err := s.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("list memories: %w", translate(catalogName, err))
	}
	return list, nil
}

func (s *Store) list(ctx context.Context) ([]MemoryInfo, error) {
	rows, err := s.reads.QueryContext(ctx, `
		SELECT m.id, m.agent, m.project, m.name, m.created, coalesce(a.alias, '')
		FROM memory m LEFT JOIN alias a ON a.memory = m.id
		ORDER BY m.agent, m.project, a.alias`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []MemoryInfo
	for rows.Next() {
		var info MemoryInfo
		var created stamp
		var alias string
		var c cells
		c.text(&info.ID).text(&info.Key.Agent).text(&info.Key.Project).text(&info.Name).stamp(&created).text(&alias)
		if err := c.scan(rows); err != nil {
			return nil, err
		}
		if c.bad || MemoryID(info.Key) != info.ID {
			continue
		}
		info.Created = created.time()
		if n := len(list); n == 0 || list[n-1].ID != info.ID {
			list = append(list, info)
		}
		if alias != "" {
			last := &list[len(list)-1]
			last.Aliases = append(last.Aliases, alias)
		}
	}
	for i := range list {
		slices.Sort(list[i].Aliases)
	}
	return list, rows.Err()
}
