package partner

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMemoryForgetsTheOldest(t *testing.T) {
	m := newMemory[int, string](3)
	held := func() (keys []int) {
		for k := range 10 {
			if _, ok := m.get(k); ok {
				keys = append(keys, k)
			}
		}
		return keys
	}
	for k := range 3 {
		m.put(k, "a")
	}
	assert.Equal(t, []int{0, 1, 2}, held())
	m.put(0, "b") // stays the oldest
	v, _ := m.get(0)
	assert.Equal(t, "b", v)
	m.put(3, "a")
	assert.Equal(t, []int{1, 2, 3}, held())
	m.put(0, "a") // comes back as the newest
	assert.Equal(t, []int{0, 2, 3}, held())
	for k := 4; k < 10; k++ {
		m.put(k, "a")
	}
	assert.Equal(t, []int{7, 8, 9}, held())
	assert.Len(t, m.keys, 3)
	assert.Len(t, m.entries, 3)
}
