package service_test

import (
	"testing"

	"recalld/service"
)

// FuzzReadBatch: no body makes the journal fall over.
func FuzzReadBatch(f *testing.F) {
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"From":{"Turn":1},"To":{"Turn":4},"Source":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","Entries":[{"ID":"a","Kind":2,"Text":"x\ny","Quotes":[{"Message":"m","Start":-1,"End":9,"Role":1}]}]}`))
	f.Add([]byte(`{"Review":{"Action":3,"Entries":["a"],"Text":"x","TextHash":"AA==","Undoes":""}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		block, err := service.ReadBatch(body)
		if err != nil && block != "" {
			t.Errorf("%v, and yet a block", err)
		}
	})
}

// FuzzEntryCursor: what no answer held is refused without harm.
func FuzzEntryCursor(f *testing.F) {
	for _, s := range []string{"", "c3h4", "ZQAAAAAAAAABYWJj"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if err := service.EntryCursor(s); s != "" && len(s) < 12 && err == nil {
			t.Errorf("took %q", s)
		}
	})
}
