package diagnose

import (
	"errors"
	"fmt"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/internal/cpuset"
)

func checkCores() finding {
	t := thisMachine()
	return judgeCores(runtime.NumCPU(), cpuset.Physical(), t.quota(), t.usable())
}

// twoProcessors is the cure where there is only one.
const twoProcessors = "give the container or virtual machine two"

// more is how a shell gets a second processor, of those that this process may be given.
func more(usable []int) string {
	if len(usable) < 2 {
		return twoProcessors
	}
	return fmt.Sprintf("taskset -p -c %s $$ (or %s)", formatCores(usable[:2]), twoProcessors)
}

// usable are the processors that this process may be given: those of its group, or else of the
// machine.
func (t tuning) usable() []int {
	groups, _ := t.read("proc/self/cgroup")
	for line := range strings.Lines(groups) {
		group, isGroup := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !isGroup {
			continue
		}
		text, _ := t.read(path.Join("sys/fs/cgroup", group, "cpuset.cpus.effective"))
		if cores := parseCores(text); len(cores) > 0 {
			return cores
		}
	}
	online, _ := t.read("sys/devices/system/cpu/online")
	return parseCores(online)
}

// judgeCores judges how many processors this process may run on, of how many cores these are, and
// for how many of them the group of processes that it is in has time; 0 where the system does not
// tell, or has no such limit. A second one may be of those that are usable.
func judgeCores(processors, cores int, quota float64, usable []int) finding {
	var err error
	cure := more(usable)
	switch {
	case processors < 2:
		err = errors.New("one core: processes on it sleep between messages, which costs some 20 us each")
	case 0 < quota && quota < 2:
		err = fmt.Errorf("a quota of %.1f processors, of %d: "+
			"where two processes spin they use it up, and then all of its group stand still, for up to 0.1 s",
			quota, processors)
		cure = "give the container or unit the time of two processors, or no limit (cpu.max of its cgroup)"
	case cores == 1:
		err = fmt.Errorf("the %d processors are threads of one core: "+
			"while one spins, code on another takes 1.7 times as long", processors)
		cure = "give the process, or the virtual machine, processors of two cores (lscpu -e)"
	}
	return judge("a processor core for each of two processes that spin", err, cure)
}

// quota is for how many processors the group of processes that this one is in has time, by its own
// limit and those of the groups above it; 0: there is none. Of a container, whose groups are the
// root of what it sees, it is that of the root.
func (t tuning) quota() (least float64) {
	groups, _ := t.read("proc/self/cgroup")
	for line := range strings.Lines(groups) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		root, limit := "sys/fs/cgroup", t.cpuMax
		if controllers := fields[1]; controllers != "" { // of version 1
			if !slices.Contains(strings.Split(controllers, ","), "cpu") {
				continue
			}
			root, limit = path.Join(root, controllers), t.cfsQuota
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			if q := limit(path.Join(root, group)); q > 0 && (least == 0 || q < least) {
				least = q
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

// cpuMax is a group's quota by version 2: cpu.max has the time and the period, in us.
func (t tuning) cpuMax(group string) float64 {
	text, _ := t.read(path.Join(group, "cpu.max"))
	first, second, _ := strings.Cut(text, " ")
	us, err := strconv.ParseInt(first, 10, 64) // "max" is none
	period, err2 := strconv.ParseInt(second, 10, 64)
	if err != nil || err2 != nil {
		return 0
	}
	return share(us, period)
}

// cfsQuota is a group's quota by version 1.
func (t tuning) cfsQuota(group string) float64 {
	us, _ := t.number(path.Join(group, "cpu.cfs_quota_us"))
	period, _ := t.number(path.Join(group, "cpu.cfs_period_us"))
	return share(us, period)
}

func share(us, period int64) float64 {
	if us <= 0 || period <= 0 {
		return 0
	}
	return float64(us) / float64(period)
}
