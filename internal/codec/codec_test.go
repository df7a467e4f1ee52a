package codec_test

import (
	"encoding/hex"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/sluice-go/sluice/internal/codec"
)

func state(t *testing.T) []byte {
	t.Helper()
	e := codec.Encode('X')
	e.Int(-2)
	e.Uint(1<<64 - 1)
	e.Duration(time.Second)
	e.Instant(time.Unix(3, 5))
	e.Bytes([]byte("ab"))
	part := codec.Part()
	part.Int(7)
	e.Bytes(part.Fields())
	data, err := e.Finish()
	require.NoError(t, err)
	return data
}

func TestRoundTrip(t *testing.T) {
	d := codec.Decode("p", 'X', state(t))
	assert.EqualValues(t, -2, d.Int())
	assert.Equal(t, uint64(1<<64-1), d.Uint())
	assert.Equal(t, time.Second, d.Duration())
	assert.True(t, time.Unix(3, 5).Equal(d.Instant()))
	assert.Equal(t, []byte("ab"), d.Bytes())
	part := d.Part()
	assert.EqualValues(t, 7, part.Int())
	require.NoError(t, part.Finish())
	require.NoError(t, d.Finish())
}

// The form stays as it is: states of older versions of a program must be read.
func TestForm(t *testing.T) {
	assert.Equal(t, "5801"+"fffffffffffffffe"+"ffffffffffffffff"+"000000003b9aca00"+"0000000000000003"+"0000000000000005"+
		"0000000000000002"+"6162"+"0000000000000008"+"0000000000000007"+"b328deda", hex.EncodeToString(state(t)))
}

func TestErrors(t *testing.T) {
	data := state(t)
	for _, bad := range []struct {
		data []byte
		want string
	}{
		{nil, "p: state: 0 bytes are too short"},
		{append([]byte("Y"), data[1:]...), "p: state: it is of kind 'Y', want 'X'"},
		{append([]byte("X\x02"), data[2:]...), "p: state: it has version 2, want 1"},
		{append(data[:len(data):len(data)], 0), "p: state: the checksum differs"},
	} {
		d := codec.Decode("p", 'X', bad.data)
		assert.Zero(t, d.Int())
		assert.Nil(t, d.Bytes())
		assert.Zero(t, d.Instant())
		assert.EqualError(t, d.Part().Finish(), bad.want)
		assert.EqualError(t, d.Finish(), bad.want)
	}
	d := codec.Decode("p", 'X', data)
	d.Int()
	assert.EqualError(t, d.Finish(), "p: state: the length is out of range")

	d = codec.Decode("p", 'X', data)
	d.Check(true, "all")
	d.Check(false, "a field")
	d.Fail("later")
	assert.EqualError(t, d.Err(), "p: state: a field is out of range")
	assert.Zero(t, d.Len())

	d = codec.Decode("p", 'X', data)
	d.Uint()
	d.Bytes() // 2^64-1 of them
	assert.EqualError(t, d.Err(), "p: state: a length is out of range")
}
