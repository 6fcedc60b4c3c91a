package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"strconv"

	"github.com/rawlane/rawlane/transport/grant/internal/rules"
)

// ReadRules reads a file of rules. The error lists each wrong line. A file that anybody may write
// is refused.
func ReadRules(path string) (*Rules, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("rules: %w (write who may have which sockets into it: docs/without-root.md)", err)
		}
		return nil, fmt.Errorf("rules: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if info.Mode()&0o002 != 0 {
		return nil, fmt.Errorf("rules: %s: anybody may write it (chmod o-w %s)", path, path)
	}
	text, err := io.ReadAll(io.LimitReader(f, rules.MaxFile+1))
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return rules.Parse(path, text, rules.Lookup{User: userID, Group: groupID})
}

func userID(name string) (uint32, error) {
	u, err := user.Lookup(name)
	if errors.As(err, new(user.UnknownUserError)) {
		return 0, errors.New("no such user")
	}
	if err != nil {
		return 0, err
	}
	return parseID(u.Uid)
}

func groupID(name string) (uint32, error) {
	g, err := user.LookupGroup(name)
	if errors.As(err, new(user.UnknownGroupError)) {
		return 0, errors.New("no such group")
	}
	if err != nil {
		return 0, err
	}
	return parseID(g.Gid)
}

func parseID(text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	return uint32(n), err
}

// userName is a user's name for messages, or its number.
func userName(uid uint32) string {
	id := strconv.FormatUint(uint64(uid), 10)
	if u, err := user.LookupId(id); err == nil {
		return u.Username
	}
	return id
}

// userGroups returns the groups that a user has; none if the system does not know the user.
func userGroups(uid uint32) ([]uint32, error) {
	u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10))
	if errors.As(err, new(user.UnknownUserIdError)) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, err
	}
	var groups []uint32
	for _, id := range ids {
		n, err := parseID(id)
		if err != nil {
			return nil, err
		}
		groups = append(groups, n)
	}
	return groups, nil
}
