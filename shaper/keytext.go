package shaper

import (
	"encoding"
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
)

// A keyText writes keys as bytes and reads them again.
type keyText[K comparable] struct {
	of  func(K) ([]byte, error)
	key func([]byte) (K, error)
}

// keyTexts returns how keys of a type are written.
func keyTexts[K comparable]() (keyText[K], error) {
	var none K
	t := reflect.TypeFor[K]()
	switch {
	case t.Kind() == reflect.String:
		return keyText[K]{
			of: func(key K) ([]byte, error) { return []byte(reflect.ValueOf(key).String()), nil },
			key: func(name []byte) (key K, _ error) {
				reflect.ValueOf(&key).Elem().SetString(string(name))
				return key, nil
			},
		}, nil
	case reflect.Zero(t).CanInt():
		return signedTexts[K](), nil
	case reflect.Zero(t).CanUint():
		return unsignedTexts[K](), nil
	}
	_, writes := any(&none).(encoding.TextMarshaler)
	_, reads := any(&none).(encoding.TextUnmarshaler)
	if t.Kind() == reflect.Interface || t.Kind() == reflect.Pointer || !writes || !reads {
		return keyText[K]{}, fmt.Errorf("shaper: state: keys of type %v cannot be saved: they must be strings, integers, or have MarshalText and UnmarshalText", t)
	}
	return ownTexts[K](), nil
}

// ownTexts is for keys that write and read themselves. Their errors are not told, as these
// may have the key in them, which may be a secret.
func ownTexts[K comparable]() keyText[K] {
	read := func(name []byte) (key K, err error) {
		if any(&key).(encoding.TextUnmarshaler).UnmarshalText(name) != nil {
			err = errKey
		}
		return key, err
	}
	return keyText[K]{
		of: func(key K) ([]byte, error) {
			name, err := any(&key).(encoding.TextMarshaler).MarshalText()
			if err != nil {
				return nil, errors.New("its MarshalText fails")
			}
			if again, err := read(name); err != nil || again != key {
				return nil, errors.New("its text is read as another key")
			}
			return name, nil
		},
		key: read,
	}
}

var errKey = errors.New("it is no key of this type")

func signedTexts[K comparable]() keyText[K] {
	return keyText[K]{
		of: func(key K) ([]byte, error) {
			return binary.BigEndian.AppendUint64(nil, uint64(reflect.ValueOf(key).Int())), nil
		},
		key: func(name []byte) (key K, err error) {
			v := reflect.ValueOf(&key).Elem()
			if len(name) != 8 || v.OverflowInt(int64(binary.BigEndian.Uint64(name))) {
				return key, errKey
			}
			v.SetInt(int64(binary.BigEndian.Uint64(name)))
			return key, nil
		},
	}
}

func unsignedTexts[K comparable]() keyText[K] {
	return keyText[K]{
		of: func(key K) ([]byte, error) {
			return binary.BigEndian.AppendUint64(nil, reflect.ValueOf(key).Uint()), nil
		},
		key: func(name []byte) (key K, err error) {
			v := reflect.ValueOf(&key).Elem()
			if len(name) != 8 || v.OverflowUint(binary.BigEndian.Uint64(name)) {
				return key, errKey
			}
			v.SetUint(binary.BigEndian.Uint64(name))
			return key, nil
		},
	}
}
