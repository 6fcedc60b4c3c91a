// Package optimize finds the plan that spreads a traffic best over the paths of a network.
//
// [Plan] is the whole interface: network, traffic and the present plan in, a better plan and a [Report] out.
//
// Source: VFREC §2.4, §3.1 leave the method open.
package optimize
