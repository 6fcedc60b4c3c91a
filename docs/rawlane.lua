-- Wireshark dissector for rawlane's messages (docs/wire-format.md).
--
--   tshark -X lua_script:rawlane.lua -r capture.pcapng
--   Wireshark: copy it into the folder "Personal Lua Plugins" of Help > About > Folders.
--
-- Filters: rawlane, rawlane.from == 3, rawlane.dst_port == 7, rawlane.checksum.status == "bad",
-- rawlane.stream.kind == "reset", rawlane.call.service == "echo", rawlane.op == "put",
-- rawlane.barrier.kind == "nack", rawlane.discovery.host == "alpha", rawlane.exchange.kind == "fetch".
-- Ports that are not the default: Preferences > Protocols > RAWLANE.

local ETHERTYPE = 0x88b5
local VERSION, AUTH_VERSION = 1, 2
local HEADER_LENS = { [1] = 20, [2] = 48 }
local PROBE_HEAD_LEN = 16
local CONTACT_LEN = 64
local UDP_PORT = 27401 -- of links over UDP
local TRAIN_FRAMES = 1 -- UDP source port of a train that carries frames; 2 and 3: an offer, an answer

local rawlane = Proto("rawlane", "rawlane message")

local kinds = { [1] = "unicast", [2] = "multicast", [3] = "broadcast", [4] = "probe", [5] = "reply", [6] = "contact",
  [7] = "introduction" }

local f = rawlane.fields
f.version   = ProtoField.uint8("rawlane.version", "Version", base.DEC, nil, 0xf0)
f.kind      = ProtoField.uint8("rawlane.kind", "Kind", base.DEC, kinds, 0x0f)
f.encrypted = ProtoField.bool("rawlane.encrypted", "Encrypted", 8, nil, 0x02)
f.key       = ProtoField.uint8("rawlane.key", "Key", base.DEC, nil, 0xf0)
f.sender    = ProtoField.uint64("rawlane.incarnation", "Incarnation of the sender's link", base.HEX)
f.counter   = ProtoField.uint64("rawlane.counter", "Counter", base.DEC)
f.tag       = ProtoField.bytes("rawlane.tag", "Tag (AES-GCM, not checked)")
f.tagged    = ProtoField.bool("rawlane.tagged", "Sent with a VLAN tag", 8, nil, 0x01)
f.header_only = ProtoField.bool("rawlane.checksum.header_only", "Checksum of the header alone", 8, nil, 0x02)
f.dst_port  = ProtoField.uint8("rawlane.dst_port", "Destination port")
f.src_port  = ProtoField.uint8("rawlane.src_port", "Source port")
f.from      = ProtoField.uint16("rawlane.from", "From node")
f.to        = ProtoField.uint16("rawlane.to", "To node")
f.group     = ProtoField.uint16("rawlane.group", "To group")
f.cluster   = ProtoField.uint32("rawlane.cluster", "Cluster", base.HEX)
f.length    = ProtoField.uint16("rawlane.length", "Payload length")
f.pcp       = ProtoField.uint16("rawlane.pcp", "Priority as sent", base.DEC, nil, 0xe000)
f.dei       = ProtoField.bool("rawlane.dei", "Drop eligible as sent", 16, nil, 0x1000)
f.vid       = ProtoField.uint16("rawlane.vid", "VID as sent", base.DEC, nil, 0x0fff)
f.checksum  = ProtoField.uint32("rawlane.checksum", "Checksum", base.HEX)
f.status    = ProtoField.string("rawlane.checksum.status", "Checksum status")
f.payload   = ProtoField.bytes("rawlane.payload", "Payload")
f.number    = ProtoField.uint32("rawlane.probe.number", "Probe number")
f.reply_tag   = ProtoField.bool("rawlane.probe.reply_tag", "Reply with another tag", 8, nil, 0x01)
f.any_node    = ProtoField.bool("rawlane.probe.any_node", "Reply from any node", 8, nil, 0x04)
f.reply_tci   = ProtoField.uint16("rawlane.probe.reply_tci", "Tag of the reply", base.HEX)
f.received    = ProtoField.bool("rawlane.probe.received_tagged", "Received with a tag", 8, nil, 0x08)
f.received_tci = ProtoField.uint16("rawlane.probe.received_tci", "Received tag", base.HEX)
f.incarnation = ProtoField.uint32("rawlane.probe.incarnation", "Incarnation of the sender", base.HEX)
f.padding   = ProtoField.bytes("rawlane.padding", "Padding")

-- Frames of remote memory, and the records in them.
f.frame     = ProtoField.string("rawlane.frame", "Frame")
f.lane      = ProtoField.string("rawlane.lane", "Lane")
f.sequence  = ProtoField.uint32("rawlane.sequence", "Sequence")
f.ack       = ProtoField.uint32("rawlane.ack", "Next frame expected")
f.credit    = ProtoField.uint16("rawlane.credit", "Credit")
f.source    = ProtoField.uint32("rawlane.source", "Incarnation of the sender", base.HEX)
f.dest      = ProtoField.uint32("rawlane.destination", "Incarnation of the receiver", base.HEX)
f.op        = ProtoField.string("rawlane.op", "Operation")
f.op_flags  = ProtoField.uint8("rawlane.op.flags", "Flags (1 last part, 2 first part, 4 notify)")
f.op_id     = ProtoField.uint16("rawlane.op.id", "Id")
f.op_offset = ProtoField.uint64("rawlane.op.offset", "Offset")
f.op_request = ProtoField.uint32("rawlane.op.request", "Request")
f.op_length = ProtoField.uint32("rawlane.op.length", "Length")
f.op_operand = ProtoField.uint64("rawlane.op.operand", "Operand")
f.op_expected = ProtoField.uint64("rawlane.op.expected", "Expected")
f.op_at     = ProtoField.uint32("rawlane.op.at", "Offset in the reply")
f.op_value  = ProtoField.uint64("rawlane.op.value", "Value")
f.op_reason = ProtoField.uint8("rawlane.op.reason", "Reason", base.DEC, {
  "no such id", "wrong key", "out of range", "no right", "misaligned", "full" })
f.data      = ProtoField.bytes("rawlane.data", "Data")

-- Records of connections and calls, and packets.
f.stream    = ProtoField.string("rawlane.stream.kind", "Record of a stream")
f.stream_no = ProtoField.uint64("rawlane.stream.number", "Stream", base.HEX)
f.dialer    = ProtoField.bool("rawlane.stream.dialer", "From the stream's dialer", 8, nil, 0x01)
f.limit     = ProtoField.uint64("rawlane.stream.limit", "Accepts bytes before")
f.service   = ProtoField.string("rawlane.stream.service", "Service")
f.reason    = ProtoField.uint8("rawlane.stream.reason", "Reason", base.DEC, {
  "nobody listens", "backlog full", "too many streams", "another version of the stream protocol", "listener closed",
  "dialer has given up", "protocol violation", "no such stream", "the other end has cut it off" })
f.packet_to = ProtoField.string("rawlane.packet.to", "To service")
f.packet_from = ProtoField.string("rawlane.packet.from", "From service")
f.call      = ProtoField.string("rawlane.call.kind", "Record of a call")
f.call_no   = ProtoField.uint64("rawlane.call.number", "Call", base.HEX)
f.call_service = ProtoField.string("rawlane.call.service", "Service")
f.left      = ProtoField.uint64("rawlane.call.left", "Microseconds until the deadline (0: none)")
f.call_status = ProtoField.uint8("rawlane.call.status", "Status", base.DEC, {
  [0] = "done", "failed", "nobody serves it", "too many requests wait", "the call is over", "another version",
  "closing" })

-- Messages of barriers, of discovery and of exchanges.
local reasons = { "silent", "unreachable", "left", "restarted", "another algorithm" }
f.barrier     = ProtoField.string("rawlane.barrier.kind", "Message of a barrier")
f.b_number    = ProtoField.uint8("rawlane.barrier.number", "Barrier")
f.b_label     = ProtoField.uint8("rawlane.barrier.label", "Label")
f.b_entered   = ProtoField.bool("rawlane.barrier.entered", "The sender has entered", 8, nil, 0x01)
f.b_decided   = ProtoField.bool("rawlane.barrier.decided", "Decided", 8, nil, 0x02)
f.b_query     = ProtoField.bool("rawlane.barrier.query", "An answer is wanted", 8, nil, 0x04)
f.b_heard     = ProtoField.bool("rawlane.barrier.heard", "The sender has heard the receiver", 8, nil, 0x08)
f.b_group     = ProtoField.uint64("rawlane.barrier.group", "Identity of the group", base.HEX)
f.b_epoch     = ProtoField.uint32("rawlane.barrier.epoch", "Epoch")
f.b_generation = ProtoField.uint32("rawlane.barrier.generation", "Generation (of a report: its version)")
f.b_algorithm = ProtoField.uint32("rawlane.barrier.algorithm", "Algorithm", base.HEX)
f.b_sender    = ProtoField.uint32("rawlane.barrier.incarnation", "Incarnation of the sender", base.HEX)
f.b_receiver  = ProtoField.uint32("rawlane.barrier.receiver", "Incarnation of the receiver", base.HEX)
f.b_known     = ProtoField.uint32("rawlane.barrier.known", "Incarnation of a member, by rank", base.HEX)
f.b_own       = ProtoField.uint32("rawlane.barrier.own", "The sender's own generation")
f.b_lowest    = ProtoField.uint32("rawlane.barrier.lowest", "Lowest epoch that exists (0: none)")
f.b_answers   = ProtoField.string("rawlane.barrier.answers", "Answers")
f.b_done      = ProtoField.uint8("rawlane.barrier.completed", "Completed barrier")
f.b_done_to   = ProtoField.uint32("rawlane.barrier.completed_to", "Completed to generation")
f.b_rank      = ProtoField.uint16("rawlane.barrier.rank", "Rank that is gone")
f.b_reason    = ProtoField.uint8("rawlane.barrier.reason", "Reason", base.DEC, reasons)
f.d_seeking   = ProtoField.bool("rawlane.discovery.seeking", "Seeking", 8, nil, 0x01)
f.d_failed    = ProtoField.bool("rawlane.discovery.failed", "Failed: the sender is of no cluster", 8, nil, 0x04)
f.d_nodes     = ProtoField.uint16("rawlane.discovery.nodes", "Nodes that the sender expects")
f.d_network   = ProtoField.uint8("rawlane.discovery.network", "Network")
f.d_address   = ProtoField.ether("rawlane.discovery.address", "Address on a network")
f.d_place     = ProtoField.uint64("rawlane.discovery.place", "Kernel that the sender runs on", base.HEX)
f.d_cores     = ProtoField.uint64("rawlane.discovery.cores", "Cores that it may use, by number modulo 64", base.HEX)
f.d_usable    = ProtoField.uint16("rawlane.discovery.usable", "Cores that it uses at one time")
f.d_path      = ProtoField.uint8("rawlane.discovery.path", "Path to nodes of its host", base.DEC,
  { [0] = "kernel", [1] = "memory", [2] = "process" })
f.d_host      = ProtoField.string("rawlane.discovery.host", "Host")
f.exchange    = ProtoField.string("rawlane.exchange.kind", "Message of an exchange")
f.x_sender    = ProtoField.uint32("rawlane.exchange.incarnation", "Incarnation of the sender", base.HEX)
f.x_receiver  = ProtoField.uint32("rawlane.exchange.receiver", "Incarnation of the receiver (0: not known, or all)", base.HEX)
f.x_number    = ProtoField.uint32("rawlane.exchange.number", "Request, question or round")
f.x_offset    = ProtoField.uint32("rawlane.exchange.offset", "Offset")
f.x_length    = ProtoField.uint32("rawlane.exchange.length", "Length (4294967295: none yet)")

rawlane.prefs.memfifo = Pref.uint("Port of memfifo", 253, "memfifo.Config.Port")
rawlane.prefs.rawnet  = Pref.uint("Port of rawnet", 251, "rawnet.Config.Port")
rawlane.prefs.packets = Pref.uint("Port of rawnet's packets", 250, "rawnet.Config.PacketPort")
rawlane.prefs.rpc     = Pref.uint("Port of rpc", 249, "rpc.Config.Port")
rawlane.prefs.barrier = Pref.uint("Port of barriers", 254, "barrier.Config.Port")
rawlane.prefs.exchange = Pref.uint("Port of exchanges", 252, "cluster.ExchangerConfig.Port")
local DISCOVERY_PORT = 255

local e = rawlane.experts
e.short    = ProtoExpert.new("rawlane.short", "Shorter than a header", expert.group.MALFORMED, expert.severity.ERROR)
e.version  = ProtoExpert.new("rawlane.bad_version", "Another version of the wire format", expert.group.PROTOCOL, expert.severity.WARN)
e.length   = ProtoExpert.new("rawlane.bad_length", "The payload is cut off", expert.group.MALFORMED, expert.severity.ERROR)
e.checksum = ProtoExpert.new("rawlane.bad_checksum", "Bad checksum", expert.group.CHECKSUM, expert.severity.ERROR)
e.record   = ProtoExpert.new("rawlane.bad_record", "Malformed record", expert.group.MALFORMED, expert.severity.ERROR)
e.probe    = ProtoExpert.new("rawlane.bad_probe", "A probe that is too short, or has a group address", expert.group.PROTOCOL, expert.severity.WARN)
e.contact  = ProtoExpert.new("rawlane.bad_contact", "A contact of another length", expert.group.PROTOCOL, expert.severity.WARN)
e.cut      = ProtoExpert.new("rawlane.cut", "Captured in part", expert.group.PROTOCOL, expert.severity.NOTE)
e.kind     = ProtoExpert.new("rawlane.bad_kind", "Unknown kind", expert.group.PROTOCOL, expert.severity.WARN)

-- CRC-32C (Castagnoli), reflected, one byte at a time.
local crc_table = {}
for i = 0, 255 do
  local c = i
  for _ = 1, 8 do
    local low = bit.band(c, 1)
    c = bit.rshift(c, 1)
    if low == 1 then c = bit.bxor(c, 0x82f63b78) end
  end
  crc_table[i] = c
end

local function crc_update(c, bytes)
  for i = 0, bytes:len() - 1 do
    c = bit.bxor(bit.rshift(c, 8), crc_table[bit.band(bit.bxor(c, bytes:get_index(i)), 0xff)])
  end
  return c
end

-- The checksum covers the header without the checksum itself, then the payload, unless that is left out.
local function checksum(buffer, payload_len)
  local c = crc_update(0xffffffff, buffer(0, 16):bytes())
  local header_only = bit.band(buffer(1, 1):uint(), 2) ~= 0
  if payload_len > 0 and not header_only then c = crc_update(c, buffer(HEADER_LENS[VERSION], payload_len):bytes()) end
  c = bit.bnot(c)
  return c < 0 and c + 0x100000000 or c
end

-- A probe (kind 4) or a reply (5) begins its payload with a head. Returns what to say of it.
local function probe_head(kind, head, tree)
  tree:add(f.number, head(0, 4))
  local flags = head(4, 1):uint()
  tree:add(f.reply_tag, head(4, 1))
  tree:add(f.any_node, head(4, 1))
  if bit.band(flags, 2) ~= 0 then tree:add(f.reply_tci, head(6, 2)) end
  if kind == 5 then
    tree:add(f.received, head(4, 1))
    if bit.band(flags, 8) ~= 0 then tree:add(f.received_tci, head(8, 2)) end
  end
  tree:add(f.incarnation, head(12, 4))
  return string.format(" %s %d", kinds[kind], head(0, 4):uint())
end

-- record_of_stream and record_of_call add what was pushed to a public handler, and return what to say
-- of it, or nil where it is malformed.
local stream_kinds = { "open", "accept", "refuse", "data", "window", "fin", "close", "reset" }

local function record_of_stream(rec, tree, whole)
  local len = rec:len()
  if len < 12 then return nil end
  local kind, version = bit.band(rec(0, 1):uint(), 0x0f), bit.rshift(rec(0, 1):uint(), 4)
  if not whole and kind ~= 4 then return nil end
  local flags, reason = rec(1, 1):uint(), rec(2, 1):uint()
  local has_limit, ends, at = kind == 1 or kind == 2 or kind == 5, kind == 3 or kind == 8, 12
  if version ~= 1 and not ends or not stream_kinds[kind] or flags > 1 or rec(3, 1):uint() ~= 0 then return nil end
  if ends ~= (reason ~= 0) or has_limit and len < 20 then return nil end
  if has_limit then at = 20 end
  local rest = len - at
  local least = (kind == 1 or kind == 4) and 1 or 0
  if rest < least or kind == 1 and rest > 255 or least == 0 and rest > 0 then return nil end
  tree:add(f.stream, rec(0, 1), stream_kinds[kind])
  tree:add(f.dialer, rec(1, 1))
  tree:add(f.stream_no, rec(4, 8))
  if ends then tree:add(f.reason, rec(2, 1)) end
  if has_limit then tree:add(f.limit, rec(12, 8)) end
  local about = stream_kinds[kind]
  if kind == 1 then
    tree:add(f.service, rec(at))
    about = string.format('open "%s"', rec(at):string())
  elseif kind == 4 then
    tree:add(f.data, rec(at))
    about = string.format("data %d bytes", rest) .. (whole and "" or " and more")
  end
  return about
end

local MAX_LEFT = UInt64(0xd2f1a9fb, 0x0010624d) -- 2^62 ns, in microseconds
local call_kinds = { "request", "response", "cancellation" }

local function record_of_call(rec, tree, whole)
  local len = rec:len()
  if len < 12 then return nil end
  local kind, version = bit.band(rec(0, 1):uint(), 0x0f), bit.rshift(rec(0, 1):uint(), 4)
  local status, name = rec(1, 1):uint(), rec(2, 1):uint()
  if version ~= 1 and not (kind == 2 and status == 5) then return nil end
  if not call_kinds[kind] or rec(3, 1):uint() ~= 0 or status > 6 or kind ~= 2 and status ~= 0 then return nil end
  local at = 12
  if kind == 1 then
    at = 20 + name
    if name == 0 or len < at or rec(12, 8):uint64() > MAX_LEFT then return nil end
  elseif name > 0 or kind == 3 and len > 12 then
    return nil
  end
  tree:add(f.call, rec(0, 1), call_kinds[kind])
  tree:add(f.call_no, rec(4, 8))
  local about = call_kinds[kind]
  if kind == 1 then
    tree:add(f.left, rec(12, 8))
    tree:add(f.call_service, rec(20, name))
    about = string.format('request "%s"', rec(20, name):string())
  elseif kind == 2 then
    tree:add(f.call_status, rec(1, 1))
  end
  if len > at then
    tree:add(f.data, rec(at))
    about = string.format("%s %d bytes", about, len - at)
  end
  if not whole then about = about .. " and more" end
  return about
end

-- The layouts of operations: the fields behind opcode, flags and length.
local SECRET = { nil, 8 }
local ID, OFFSET, REQUEST, REASON = { f.op_id, 2 }, { f.op_offset, 8 }, { f.op_request, 4 }, { f.op_reason, 1 }
local LENGTH, OPERAND = { f.op_length, 4 }, { f.op_operand, 8 }
local ops = {
  { "put", ID, SECRET, OFFSET }, { "push", ID, SECRET, LENGTH }, { "try push", ID, SECRET, REQUEST },
  { "get", ID, SECRET, OFFSET, REQUEST, LENGTH }, { "fetch and add", ID, SECRET, OFFSET, REQUEST, OPERAND },
  { "swap", ID, SECRET, OFFSET, REQUEST, OPERAND },
  { "compare and swap", ID, SECRET, OFFSET, REQUEST, OPERAND, { f.op_expected, 8 } }, { "fence", REQUEST },
  { "data", REQUEST, { f.op_at, 4 } }, { "value", REQUEST, { f.op_value, 8 } }, { "error", REQUEST, REASON },
  { "refused", ID, REASON }, { "put continue" },
}
local PUSH, PUSH_HEAD = 2, 18

-- An operation at the front of b. Returns its length and what to say of it, or nil.
local function operation(b, tree, handler)
  if b:len() < 4 then return nil end
  local layout = ops[b(0, 1):uint()]
  if not layout then return nil end
  local data_len, at = b(2, 2):uint(), 4
  for i = 2, #layout do at = at + layout[i][2] end
  if b:len() < at + data_len then return nil end
  local sub = tree:add(rawlane, b(0, at + data_len), "Record: " .. layout[1])
  local flags = b(1, 1):uint()
  local public = layout == ops[PUSH] and b(4, 2):uint() == 1 and b(6, 8):uint64() == UInt64(0)
  if handler and public and bit.band(flags, 2) ~= 0 then
    local whole = bit.band(flags, 1) ~= 0
    local about
    if data_len > 0 and (not whole or b(14, 4):uint() == data_len) then
      about = handler(b(PUSH_HEAD, data_len):tvb(), sub, whole)
    end
    if about then return at + data_len, about end
    if whole then
      sub:add_proto_expert_info(e.record)
      return at + data_len, "malformed"
    end
  end
  sub:add(f.op, b(0, 1), layout[1])
  sub:add(f.op_flags, b(1, 1))
  local field_at = 4
  for i = 2, #layout do
    if layout[i][1] then sub:add(layout[i][1], b(field_at, layout[i][2])) end
    field_at = field_at + layout[i][2]
  end
  if data_len > 0 then sub:add(f.data, b(at, data_len)) end
  return at + data_len, layout[1]
end

-- A frame of remote memory. Returns what to say of it.
local frames = { "data", "ack", "hello", "hello-ack", "bye", "bye-ack" }

local function memory_frame(b, tree, handler)
  local first = b:len() >= 20 and b(0, 1):uint() or 0
  local kind = frames[bit.band(first, 0x0f)]
  local words = b:len() - 20
  if bit.rshift(first, 4) ~= 2 or not kind or b(1, 1):uint() > 7 or b(4, 4):uint() == 0
    or kind == "ack" and (words % 8 ~= 0 or words > 32 or words > 0 and b(b:len() - 8, 8):uint64() == UInt64(0)) then
    tree:add_proto_expert_info(e.record)
    return " | malformed"
  end
  tree:add(f.frame, b(0, 1), kind)
  tree:add(f.credit, b(2, 2))
  tree:add(f.source, b(4, 4))
  tree:add(f.dest, b(8, 4))
  tree:add(f.sequence, b(12, 4))
  tree:add(f.ack, b(16, 4))
  local flags = b(1, 1):uint()
  if kind ~= "data" and kind ~= "ack" then return " | " .. kind end
  local lane = bit.band(flags, kind == "data" and 1 or 2) ~= 0 and "replies" or "requests"
  tree:add(f.lane, b(1, 1), lane)
  if kind == "ack" then return string.format(" | ack of %s %d", lane, b(16, 4):uint()) end
  local about = string.format(" | %s %d, ack %d", lane, b(12, 4):uint(), b(16, 4):uint())
  local at = 20
  while at < b:len() do
    local size, what = operation(b(at):tvb(), tree, handler)
    if not size then
      tree:add_proto_expert_info(e.record)
      return about .. " | malformed"
    end
    at, about = at + size, about .. " | " .. what
  end
  return about
end

local function packet(b, tree)
  local to, from = b:len() >= 4 and b(1, 1):uint() or 0, b:len() >= 4 and b(2, 1):uint() or 0
  if to == 0 or from == 0 or b(0, 1):uint() ~= 1 or b(3, 1):uint() ~= 0 or b:len() < 4 + to + from then
    tree:add_proto_expert_info(e.record)
    return " | malformed"
  end
  tree:add(f.packet_to, b(4, to))
  tree:add(f.packet_from, b(4 + to, from))
  if b:len() > 4 + to + from then tree:add(f.data, b(4 + to + from)) end
  return string.format(' | packet from "%s" to "%s"', b(4 + to, from):string(), b(4, to):string())
end

-- The parts of a barrier's message behind its head. Each is called with what is there, adds it to the
-- tree, and returns what to say of it, or nil where it is malformed. Nothing is added before all of
-- it is known to be right.
local BARRIER_VERSION, BARRIER_HEAD = 4, 28
local NOTIFY, NACK, NOT_YET, FAIL, BYE, BYE_ACK, NO_GROUP, REPORT = 1, 2, 3, 4, 5, 6, 9, 10
local MAX_KNOWN, MAX_NAMED, MAX_BYE, MAX_GONE = 320, 2, 256 * 5, 400
local barrier_kinds = { "notify", "nack", "not yet", "fail", "bye", "bye ack", "status request", "status reply",
  "no such group", "report" }

-- count reads the number at an offset, and checks that there are as many items of a size behind it.
local function count(b, at, size, most)
  if b:len() < at + 2 then return nil end
  local n = b(at, 2):uint()
  if n > most or b:len() < at + 2 + n * size then return nil end
  return n
end

local function known(b, at, n, tree)
  for i = 0, n - 1 do tree:add(f.b_known, b(at + 2 + 4 * i, 4)) end
end

local barrier_parts = {
  [NOTIFY] = function(b, tree)
    if b(16, 4):uint() ~= 1 then return "" end
    local n = count(b, 28, 4, MAX_KNOWN)
    if not n then return nil end
    known(b, 28, n, tree)
    return ""
  end,
  [NOT_YET] = function(b, tree)
    if b:len() < 32 then return nil end
    tree:add(f.b_own, b(28, 4))
    return ""
  end,
  [FAIL] = function(b, tree)
    local n = b:len() >= 32 and count(b, 30, 2, MAX_NAMED)
    local reason = b:len() >= 32 and b(28, 1):uint() or 0
    if not n or n == 0 or not reasons[reason] then return nil end
    local about = " " .. reasons[reason]
    tree:add(f.b_reason, b(28, 1))
    for i = 0, n - 1 do
      tree:add(f.b_rank, b(32 + 2 * i, 2))
      about = about .. " " .. b(32 + 2 * i, 2):uint()
    end
    return about
  end,
  [BYE] = function(b, tree)
    local n = count(b, 32, 5, 256)
    local k = n and count(b, 34 + 5 * n, 4, MAX_KNOWN)
    if not k or n * 5 + k * 4 > MAX_BYE then return nil end
    tree:add(f.b_receiver, b(28, 4))
    for i = 0, n - 1 do
      tree:add(f.b_done, b(34 + 5 * i, 1))
      tree:add(f.b_done_to, b(35 + 5 * i, 4))
    end
    known(b, 34 + 5 * n, k, tree)
    return ""
  end,
  [NO_GROUP] = function(b, tree)
    if b:len() < 33 then return nil end
    tree:add(f.b_lowest, b(28, 4))
    tree:add(f.b_answers, b(32, 1), barrier_kinds[b(32, 1):uint()] or "?")
    return ""
  end,
  [REPORT] = function(b, tree)
    local n, last, about = count(b, 32, 3, MAX_GONE), -1, ""
    if not n or n == 0 and bit.band(b(3, 1):uint(), 2) ~= 0 then return nil end
    for i = 0, n - 1 do
      local rank, reason = b(34 + 3 * i, 2):uint(), b(36 + 3 * i, 1):uint()
      if rank <= last or reason < 1 or reason > 4 then return nil end
      last, about = rank, string.format("%s %d %s", about, rank, reasons[reason])
    end
    tree:add(f.b_receiver, b(28, 4))
    tree:add(f.b_decided, b(3, 1))
    tree:add(f.b_query, b(3, 1))
    for i = 0, n - 1 do
      tree:add(f.b_rank, b(34 + 3 * i, 2))
      tree:add(f.b_reason, b(36 + 3 * i, 1))
    end
    return about
  end,
}

-- A message of a barrier. Returns what to say of it.
local function barrier(b, tree)
  local first = b:len() >= BARRIER_HEAD and b(0, 1):uint() or 0
  local kind = bit.band(first, 0x0f)
  local about = barrier_kinds[kind]
  if bit.rshift(first, 4) ~= BARRIER_VERSION or not about
    or b(24, 4):uint() == 0 and kind ~= NO_GROUP and kind ~= BYE_ACK then
    tree:add_proto_expert_info(e.record)
    return " | malformed"
  end
  local sub = tree:add(rawlane, b(), "Barrier: " .. about)
  local part, said = barrier_parts[kind], ""
  if part then said = part(b, sub) end
  if not said then
    sub:add_proto_expert_info(e.record)
    return " | malformed"
  end
  sub:add(f.barrier, b(0, 1), about)
  sub:add(f.b_number, b(1, 1))
  sub:add(f.b_label, b(2, 1))
  sub:add(f.b_entered, b(3, 1))
  sub:add(f.b_heard, b(3, 1))
  sub:add(f.b_group, b(4, 8))
  sub:add(f.b_epoch, b(12, 4))
  sub:add(f.b_generation, b(16, 4))
  sub:add(f.b_algorithm, b(20, 4))
  sub:add(f.b_sender, b(24, 4))
  if kind == REPORT then return string.format(" | report %d%s", b(16, 4):uint(), said) end
  if kind == BYE or kind == BYE_ACK then return " | " .. about end
  return string.format(" | barrier %d generation %d: %s%s", b(1, 1):uint(), b(16, 4):uint(), about, said)
end

-- An announcement of discovery. Returns what to say of it.
local function announcement(b, tree)
  local right = b:len() >= 7 and b(0, 1):uint() == 1
  local nics, name = right and b(2, 1):uint() or 0, right and b(6, 1):uint() or 0
  right = nics > 0 and nics <= 16 and b(3, 1):uint() < nics and name <= 63 and b:len() >= 7 + 6 * nics + name
  for i = 0, right and nics - 1 or -1 do
    local mac = b(7 + 6 * i, 6)
    local zero = mac(0, 2):uint() == 0 and mac(2, 4):uint() == 0
    if zero or bit.band(mac(0, 1):uint(), 1) ~= 0 then right = false end
  end
  local at, placed = 7 + 6 * nics + name, right and bit.band(b(1, 1):uint(), 2) ~= 0
  if placed and (b:len() < at + 20 or b(at, 4):uint() == 0 and b(at + 4, 4):uint() == 0) then right = false end
  if not right then
    tree:add_proto_expert_info(e.record)
    return " | malformed"
  end
  tree:add(f.d_seeking, b(1, 1))
  tree:add(f.d_failed, b(1, 1))
  tree:add(f.d_network, b(3, 1))
  tree:add(f.d_nodes, b(4, 2))
  for i = 0, nics - 1 do tree:add(f.d_address, b(7 + 6 * i, 6)) end
  local host = name > 0 and b(7 + 6 * nics, name):string() or ""
  if name > 0 then tree:add(f.d_host, b(7 + 6 * nics, name)) end
  if placed then
    tree:add(f.d_place, b(at, 8))
    tree:add(f.d_cores, b(at + 8, 8))
    tree:add(f.d_usable, b(at + 16, 2))
    tree:add(f.d_path, b(at + 18, 1))
  end
  return string.format(' | announcement of one of %d nodes, "%s"', b(4, 2):uint(), host)
end

local exchange_kinds = { "request", "answer", "pending", "fetch", "part", "done", "who", "here", "former" }
local EXCHANGE_VERSION = 7

-- A message of an exchange. Returns what to say of it.
local function exchange(b, tree)
  local kind = b:len() >= 24 and b(0, 1):uint() == EXCHANGE_VERSION and exchange_kinds[b(1, 1):uint()]
  if not kind then
    tree:add_proto_expert_info(e.record)
    return " | malformed"
  end
  tree:add(f.exchange, b(1, 1), kind)
  tree:add(f.x_sender, b(4, 4))
  tree:add(f.x_receiver, b(8, 4))
  tree:add(f.x_number, b(12, 4))
  tree:add(f.x_offset, b(16, 4))
  tree:add(f.x_length, b(20, 4))
  if b:len() > 24 then tree:add(f.data, b(24)) end
  return string.format(" | exchange: %s %d", kind, b(12, 4):uint())
end

-- What a whole message to a port says, if it is a port of ours, and of a kind that is sent there.
local UNICAST, MULTICAST, BROADCAST = 1, 2, 3

local function records(port, kind, b, tree)
  local p = rawlane.prefs
  if port == p.barrier and kind ~= BROADCAST then return barrier(b, tree) end
  if port == p.exchange and kind ~= MULTICAST then return exchange(b, tree) end
  if port == DISCOVERY_PORT and kind ~= MULTICAST then return announcement(b, tree) end
  if kind ~= UNICAST then return "" end
  if port == p.memfifo then return memory_frame(b, tree, nil) end
  if port == p.rawnet then return memory_frame(b, tree, record_of_stream) end
  if port == p.rpc then return memory_frame(b, tree, record_of_call) end
  if port == p.packets then return packet(b, tree) end
  return ""
end

-- Says whether a frame's addresses have a group among them.
local group_bit = Field.new("eth.ig")

local function is_group()
  for _, bit_of in ipairs({ group_bit() }) do
    if bit_of.value == true or bit_of.value == 1 then return true end
  end
  return false
end

-- A message. Where cut is true the capture does not have all of it.
local function message(buffer, pinfo, root, cut)
  pinfo.cols.protocol = "rawlane"
  local tree = root:add(rawlane, buffer())
  local short, missing = cut and e.cut or e.short, cut and e.cut or e.length
  if buffer:len() < HEADER_LENS[VERSION] then
    tree:add_proto_expert_info(short)
    return buffer:len()
  end

  tree:add(f.version, buffer(0, 1))
  tree:add(f.kind, buffer(0, 1))
  local first = buffer(0, 1):uint()
  local version = bit.rshift(first, 4)
  local header_len = HEADER_LENS[version]
  if not header_len then
    tree:add_proto_expert_info(e.version)
    pinfo.cols.info = "version " .. version
    return buffer:len()
  end
  if buffer:len() < header_len then
    tree:add_proto_expert_info(short)
    return buffer:len()
  end
  local encrypted = version == AUTH_VERSION and bit.band(buffer(1, 1):uint(), 2) ~= 0

  local kind = bit.band(first, 0x0f)
  local to = buffer(6, 2):uint()
  local dst_port, src_port = buffer(2, 1):uint(), buffer(3, 1):uint()
  tree:add(f.tagged, buffer(1, 1))
  tree:add(f.dst_port, buffer(2, 1))
  tree:add(f.src_port, buffer(3, 1))
  tree:add(f.from, buffer(4, 2))
  local destination
  if kind == 2 then
    tree:add(f.group, buffer(6, 2))
    destination = "group " .. to .. ":" .. dst_port
  elseif kind == 3 or kind == 6 or kind == 7 then
    destination = "all:" .. dst_port
  else
    tree:add(f.to, buffer(6, 2))
    destination = to .. ":" .. dst_port
  end
  tree:add(f.cluster, buffer(8, 4))
  tree:add(f.length, buffer(12, 2))
  if bit.band(buffer(1, 1):uint(), 1) == 1 then
    tree:add(f.pcp, buffer(14, 2))
    tree:add(f.dei, buffer(14, 2))
    tree:add(f.vid, buffer(14, 2))
  end
  if version == AUTH_VERSION then
    tree:add(f.encrypted, buffer(1, 1))
    tree:add(f.key, buffer(1, 1))
    tree:add(f.sender, buffer(16, 8))
    tree:add(f.counter, buffer(24, 8))
    tree:add(f.tag, buffer(32, 16))
  else
    tree:add(f.header_only, buffer(1, 1))
    tree:add(f.checksum, buffer(16, 4))
  end

  local length = buffer(12, 2):uint()
  local there = buffer:len() - header_len
  local payload_len = math.min(length, there)
  local whole = length <= there
  if not whole then
    tree:add_proto_expert_info(missing)
  elseif version == AUTH_VERSION then -- to check the tag takes the key
  elseif buffer(16, 4):uint() == checksum(buffer, length) then
    tree:add(f.status, buffer(16, 4), "good"):set_generated()
  else
    whole = false
    tree:add(f.status, buffer(16, 4), "bad"):set_generated()
    tree:add_proto_expert_info(e.checksum)
  end
  if not kinds[kind] or (kind == 6 or kind == 7) and version == VERSION then tree:add_proto_expert_info(e.kind) end

  if whole and (kind == 4 or kind == 5) then
    local to_itself = kind == 4 and buffer(4, 2):uint() == to -- looks for loops
    if length < PROBE_HEAD_LEN or not to_itself and is_group() then tree:add_proto_expert_info(e.probe) end
  elseif whole and kind == 6 and version == AUTH_VERSION and length ~= CONTACT_LEN then
    tree:add_proto_expert_info(e.contact)
  end

  local about = ""
  if (kind == 4 or kind == 5) and payload_len >= PROBE_HEAD_LEN and not encrypted then
    about = probe_head(kind, buffer(header_len, PROBE_HEAD_LEN), tree)
  end
  if payload_len > 0 then tree:add(f.payload, buffer(header_len, payload_len)) end
  if there > payload_len then tree:add(f.padding, buffer(header_len + payload_len)) end
  local said = ""
  if kind >= UNICAST and kind <= BROADCAST and whole and not encrypted then
    local empty = ByteArray.new():tvb("no payload")
    said = records(dst_port, kind, payload_len > 0 and buffer(header_len, payload_len):tvb() or empty, tree)
  end
  local line = string.format("%d:%d -> %s%s %d bytes", buffer(4, 2):uint(), src_port, destination, about, length)
  line = line .. said
  pinfo.cols.info = line
  tree:append_text(", " .. line)
  return buffer:len()
end

local datagram_cut = false -- the frame of a datagram that is dissected is not there wholly

function rawlane.dissector(buffer, pinfo, root)
  return message(buffer, pinfo, root, datagram_cut or buffer:reported_len() > buffer:len())
end

DissectorTable.get("ethertype"):add(ETHERTYPE, rawlane)

-- Frames that go together are equal in length but the last, which may be shorter. sound returns the
-- length of a message at the front of b, and whether it can be believed.
local function sound(b)
  local version = bit.rshift(b(0, 1):uint(), 4)
  local header_len = HEADER_LENS[version]
  if not header_len or b:len() < header_len then return b:len(), false end
  local length = b(12, 2):uint()
  if header_len + length > b:len() then return b:len(), false end
  return header_len + length, version == AUTH_VERSION or b(16, 4):uint() == checksum(b, length)
end

-- equals returns the length of the frames in b, the first of which cannot be believed, by the
-- second: it is as long, or the last. Each has some bytes before its message.
local function equals(b, behind)
  for at = behind + HEADER_LENS[VERSION], b:len() - behind - HEADER_LENS[VERSION] do
    local header_len = HEADER_LENS[bit.rshift(b(at + behind, 1):uint(), 4)]
    local size = header_len and behind + header_len + b(at + behind + 12, 2):uint()
    if size == at or size and at + size == b:len() then
      local _, is = sound(b(at + behind):tvb())
      if is then return at end
    end
  end
  return nil
end

-- cut_apart calls each with every frame in b.
local function cut_apart(b, behind_of, each)
  local at, frames, equal = 0, 0, nil
  while at < b:len() do
    local rest = b(at):tvb()
    local behind = behind_of(rest)
    local size, is = rest:len(), false
    if behind and rest:len() > behind then
      size, is = sound(rest(behind):tvb())
      size = size + behind
      if is then
        equal = equal or size
      else
        equal = equal or equals(rest, behind)
        size = math.min(equal or size, rest:len())
      end
    end
    each(rest(0, size):tvb(), at + size == b:len() and b:reported_len() > b:len())
    at, frames = at + size, frames + 1
  end
  return frames
end

-- Trains are behind an IPv4 and UDP header: each frame alone, as a NIC has cut them, or all of a train,
-- as this host's kernel hands them over. What has not these addresses and ports is no train.
local train = Proto("rawlane_train", "rawlane train")
local TRAIN_SRC, TRAIN_DST = Address.ip("239.82.76.1"), Address.ip("239.82.76.2")

function train.dissector(buffer, pinfo, root)
  local kind = pinfo.src_port
  if pinfo.dst_port ~= ETHERTYPE or kind < TRAIN_FRAMES or kind > TRAIN_FRAMES + 2
    or pinfo.net_src ~= TRAIN_SRC or pinfo.net_dst ~= TRAIN_DST then
    return 0
  end
  if kind ~= TRAIN_FRAMES then
    pinfo.cols.protocol = "rawlane"
    pinfo.cols.info = kind == 2 and "offer to send trains" or "answer: trains arrive"
    return buffer:len()
  end
  local frames = cut_apart(buffer, function() return 0 end, function(b, cut) message(b, pinfo, root, cut) end)
  if frames > 1 then pinfo.cols.info = string.format("%d frames as one", frames) end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(ETHERTYPE, train)

-- Links over UDP put whole frames into datagrams, and several into one that the kernel or a NIC is to cut.
local datagram = Proto("rawlane_udp", "rawlane frames in a datagram")
local ethernet = Dissector.get("eth_withoutfcs")

-- message_at returns where the message of a frame begins, or nil if it carries none.
local function message_at(b)
  local at = 12
  if b:len() >= 18 and b(at, 2):uint() == 0x8100 then at = 16 end
  return b:len() >= at + 2 and b(at, 2):uint() == ETHERTYPE and at + 2 or nil
end

function datagram.dissector(buffer, pinfo, root)
  local frames = cut_apart(buffer, message_at, function(b, cut)
    datagram_cut = cut
    ethernet:call(b, pinfo, root)
    datagram_cut = false
  end)
  if frames > 1 then pinfo.cols.info = string.format("%d frames as one", frames) end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(UDP_PORT, datagram)
