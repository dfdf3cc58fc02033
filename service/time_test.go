package service_test

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	recalldv1 "recalld/proto/recalld/v1"
)

// at is a time as it stands in a test.
func at(rfc3339, zone string) *recalldv1.SpokenTime {
	t, err := time.Parse(time.RFC3339, rfc3339)
	if err != nil {
		panic(err)
	}
	return &recalldv1.SpokenTime{At: timestamppb.New(t), Zone: zone}
}
