-- Wireshark dissector for rawlane's messages (docs/wire-format.md).
--
--   tshark -X lua_script:rawlane.lua -r capture.pcapng
--   Wireshark: copy it into the folder "Personal Lua Plugins" of Help > About > Folders.
--
-- Filters: rawlane, rawlane.from == 3, rawlane.dst_port == 7, rawlane.checksum.status == "bad", ...

local ETHERTYPE = 0x88b5
local VERSION, AUTH_VERSION = 1, 2
local HEADER_LENS = { [1] = 20, [2] = 48 }
local PROBE_HEAD_LEN = 16
local TRAIN_FRAMES = 1 -- UDP source port of a train that carries frames; 2 and 3: an offer, an answer

local rawlane = Proto("rawlane", "rawlane message")

local kinds = { [1] = "unicast", [2] = "multicast", [3] = "broadcast", [4] = "probe", [5] = "reply", [6] = "contact" }

local f = rawlane.fields
f.version   = ProtoField.uint8("rawlane.version", "Version", base.DEC, nil, 0xf0)
f.kind      = ProtoField.uint8("rawlane.kind", "Kind", base.DEC, kinds, 0x0f)
f.encrypted = ProtoField.bool("rawlane.encrypted", "Encrypted", 8, nil, 0x02)
f.key       = ProtoField.uint8("rawlane.key", "Key", base.DEC, nil, 0xf0)
f.sender    = ProtoField.uint64("rawlane.incarnation", "Incarnation of the sender's link", base.HEX)
f.counter   = ProtoField.uint64("rawlane.counter", "Counter", base.DEC)
f.tag       = ProtoField.bytes("rawlane.tag", "Tag (AES-GCM, not checked)")
f.tagged    = ProtoField.bool("rawlane.tagged", "Sent with a VLAN tag", 8, nil, 0x01)
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

local e = rawlane.experts
e.short    = ProtoExpert.new("rawlane.short", "Shorter than a header", expert.group.MALFORMED, expert.severity.ERROR)
e.version  = ProtoExpert.new("rawlane.bad_version", "Another version of the wire format", expert.group.PROTOCOL, expert.severity.WARN)
e.length   = ProtoExpert.new("rawlane.bad_length", "The payload is cut off", expert.group.MALFORMED, expert.severity.ERROR)
e.checksum = ProtoExpert.new("rawlane.bad_checksum", "Bad checksum", expert.group.CHECKSUM, expert.severity.ERROR)
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

-- The checksum covers the header without the checksum itself, then the payload.
local function checksum(buffer, payload_len)
  local c = crc_update(0xffffffff, buffer(0, 16):bytes())
  if payload_len > 0 then c = crc_update(c, buffer(HEADER_LENS[VERSION], payload_len):bytes()) end
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

function rawlane.dissector(buffer, pinfo, root)
  pinfo.cols.protocol = "rawlane"
  local tree = root:add(rawlane, buffer())
  if buffer:len() < HEADER_LENS[VERSION] then
    tree:add_proto_expert_info(e.short)
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
    tree:add_proto_expert_info(e.short)
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
  elseif kind == 3 or kind == 6 then
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
    tree:add(f.checksum, buffer(16, 4))
  end

  local length = buffer(12, 2):uint()
  local there = buffer:len() - header_len
  local payload_len = math.min(length, there)
  if length > there then
    tree:add_proto_expert_info(e.length)
  elseif version == AUTH_VERSION then -- to check the tag takes the key
  elseif buffer(16, 4):uint() == checksum(buffer, length) then
    tree:add(f.status, buffer(16, 4), "good"):set_generated()
  else
    tree:add(f.status, buffer(16, 4), "bad"):set_generated()
    tree:add_proto_expert_info(e.checksum)
  end
  if not kinds[kind] or kind == 6 and version == VERSION then tree:add_proto_expert_info(e.kind) end

  local about = ""
  if (kind == 4 or kind == 5) and payload_len >= PROBE_HEAD_LEN and not encrypted then
    about = probe_head(kind, buffer(header_len, PROBE_HEAD_LEN), tree)
  end
  if payload_len > 0 then tree:add(f.payload, buffer(header_len, payload_len)) end
  if there > payload_len then tree:add(f.padding, buffer(header_len + payload_len)) end
  local line = string.format("%d:%d -> %s%s %d bytes", buffer(4, 2):uint(), src_port, destination, about, length)
  pinfo.cols.info = line
  tree:append_text(", " .. line)
  return buffer:len()
end

DissectorTable.get("ethertype"):add(ETHERTYPE, rawlane)

-- Frames that go together are behind an IPv4 and UDP header: each alone, as a NIC has cut them, or
-- all of a train, as this host's kernel hands them over.
local train = Proto("rawlane_train", "rawlane train")

function train.dissector(buffer, pinfo, root)
  if pinfo.src_port ~= TRAIN_FRAMES then
    pinfo.cols.protocol = "rawlane"
    pinfo.cols.info = pinfo.src_port == 2 and "offer to send trains" or "answer: trains arrive"
    return buffer:len()
  end
  local at, frames = 0, 0
  while at < buffer:len() do
    local size = buffer:len() - at
    local header_len = HEADER_LENS[bit.rshift(buffer(at, 1):uint(), 4)]
    if header_len and size >= header_len then
      size = math.min(size, header_len + buffer(at + 12, 2):uint())
    end
    rawlane.dissector(buffer(at, size):tvb(), pinfo, root)
    at, frames = at + size, frames + 1
  end
  if frames > 1 then pinfo.cols.info = string.format("%d frames as one", frames) end
  return buffer:len()
end

DissectorTable.get("udp.port"):add(ETHERTYPE, train)
