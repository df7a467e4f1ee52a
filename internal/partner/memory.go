package partner

// A memory is a map that holds its newest entries and forgets the oldest.
type memory[K comparable, V any] struct {
	capacity int
	entries  map[K]V
	keys     []K // in the order of arrival, oldest at next once it is full
	next     int
}

func newMemory[K comparable, V any](capacity int) *memory[K, V] {
	return &memory[K, V]{capacity: capacity, entries: make(map[K]V)}
}

func (m *memory[K, V]) get(k K) (V, bool) {
	v, ok := m.entries[k]
	return v, ok
}

// put adds an entry, or changes the value of an old one, whose age stays.
func (m *memory[K, V]) put(k K, v V) {
	if _, ok := m.entries[k]; !ok {
		if len(m.keys) < m.capacity {
			m.keys = append(m.keys, k)
		} else {
			delete(m.entries, m.keys[m.next])
			m.keys[m.next] = k
			m.next = (m.next + 1) % m.capacity
		}
	}
	m.entries[k] = v
}
