package expand

import (
	"container/list"
	"sync"
	"time"
)

// A cache keeps the answers that were used last, each for a while. (The kept
// libraries for this start a goroutine that cannot be ended.)
type cache struct {
	size int
	ttl  time.Duration
	now  func() time.Time

	mu      sync.Mutex // guards everything below
	entries map[key]*list.Element
	order   *list.List // of entry, the last used in front
}

type entry struct {
	key      key
	variants []string // not changed once it is here
	until    time.Time
}

func newCache(size int, ttl time.Duration, now func() time.Time) *cache {
	return &cache{size: size, ttl: ttl, now: now, entries: make(map[key]*list.Element), order: list.New()}
}

// get returns what is kept for k. The caller must not change it.
func (c *cache) get(k key) (variants []string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	found := c.entries[k]
	if found == nil {
		return nil, false
	}
	e := found.Value.(entry)
	if !c.now().Before(e.until) {
		c.drop(found)
		return nil, false
	}
	c.order.MoveToFront(found)
	return e.variants, true
}

func (c *cache) put(k key, variants []string) {
	if c.ttl < 0 {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if old := c.entries[k]; old != nil {
		c.drop(old)
	}
	c.entries[k] = c.order.PushFront(entry{k, variants, c.now().Add(c.ttl)})
	for c.order.Len() > c.size {
		c.drop(c.order.Back())
	}
}

func (c *cache) drop(e *list.Element) {
	delete(c.entries, c.order.Remove(e).(entry).key)
}
