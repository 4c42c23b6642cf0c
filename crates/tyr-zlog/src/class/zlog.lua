-- A storage object of a log in the design of CORFU: slots that are written once, under an epoch.
--
--     0  "tyr-zlo", version 1        8  epoch                16  position of the first slot
--    24  width (u32): the step from the position of a slot to that of the next
--    28  slots (u32)                32  highest position written, and one; 0: none
--    40  where the next data goes   48  zeros to 64, then the slots:
--     0  offset of the data          8  its length (u32)     12  state (u32)
--
-- Numbers are u64, little-endian, below 2^53, unless it is said. All methods are given the caller's
-- epoch first; one that is older than the object's is refused. The class of the same name in Rust
-- (object.rs) does the same, byte for byte.

local MAGIC, HEAD, SLOT = "tyr-zlo\1", 64, 16
local UNWRITTEN, DATA, FILLED, TRIMMED = 0, 1, 2, 3
local ENTRY_MAX = 65536

-- Codes of failures, those of the original: EAGAIN, EROFS, ENODATA, ENOENT, ENXIO, EINVAL, EEXIST.
local STALE, READ_ONLY, INVALID, NOT_WRITTEN = -11, -30, -61, -2
local NO_OBJECT, WRONG, EXISTS = -6, -22, -17

local function u64(bytes, at)
  return buffer.readu32(bytes, at) + buffer.readu32(bytes, at + 4) * 2 ^ 32
end

local function set_u64(bytes, at, number)
  buffer.writeu32(bytes, at, number % 2 ^ 32)
  buffer.writeu32(bytes, at + 4, number // 2 ^ 32)
end

local function wrong(cx, text)
  cx:fail("InvalidArgument", text, WRONG)
end

-- The numbers that an input begins with.
local function numbers(cx, input, count)
  if buffer.len(input) < 8 * count then
    wrong(cx, string.format("the input is to begin with %d numbers of 8 bytes", count))
  end
  local all = {}
  for index = 1, count do
    all[index] = u64(input, 8 * index - 8)
    if all[index] >= 2 ^ 53 then wrong(cx, "numbers are below 2^53") end
  end
  return table.unpack(all)
end

-- The head of the object, which is not newer than the caller's epoch.
local function open(cx, blob, epoch)
  local head = blob:read(0, HEAD)
  if buffer.len(head) == 0 then cx:fail("NotFound", "there is no such object", NO_OBJECT) end
  if buffer.len(head) < HEAD or buffer.readstring(head, 0, 8) ~= MAGIC then
    wrong(cx, "the blob is no object of a log")
  end
  local stored = u64(head, 8)
  if epoch < stored then
    local text = string.format("epoch %d is stale: the object has %d", epoch, stored)
    cx:fail("InvalidArgument", text, STALE)
  end
  return { epoch = stored, first = u64(head, 16), width = buffer.readu32(head, 24),
    slots = buffer.readu32(head, 28), next = u64(head, 32), free = u64(head, 40) }
end

-- Which slot a position has.
local function slot_of(cx, object, position)
  local slot = (position - object.first) / object.width
  if slot < 0 or slot >= object.slots or slot % 1 ~= 0 then
    wrong(cx, string.format("position %d is not of this object", position))
  end
  return slot
end

-- Offset, length and state of a slot.
local function read_slot(blob, slot)
  local bytes = blob:read(HEAD + SLOT * slot, SLOT)
  return u64(bytes, 0), buffer.readu32(bytes, 8), buffer.readu32(bytes, 12)
end

local function slot_bytes(offset, len, state)
  local bytes = buffer.create(SLOT)
  set_u64(bytes, 0, offset)
  buffer.writeu32(bytes, 8, len)
  buffer.writeu32(bytes, 12, state)
  return bytes
end

-- The object's epoch, and the highest position written and one.
local function position_bytes(object)
  local bytes = buffer.create(16)
  set_u64(bytes, 0, object.epoch)
  set_u64(bytes, 8, object.next)
  return bytes
end

local methods = {}

-- Makes the object: epoch, position of the first slot, width, slots.
methods.init = { kind = "call", run = function(cx, blob, input)
  local epoch, first, width, slots = numbers(cx, input, 4)
  if width < 1 or width > 65536 or slots < 1 or slots > 65536 then
    wrong(cx, "width and slots are 1 to 65536")
  end
  if buffer.len(blob:read(0, HEAD)) > 0 then
    cx:fail("AlreadyExists", "the object is there already", EXISTS)
  end
  local head = buffer.create(HEAD + SLOT * slots)
  buffer.writestring(head, 0, MAGIC)
  set_u64(head, 8, epoch)
  set_u64(head, 16, first)
  buffer.writeu32(head, 24, width)
  buffer.writeu32(head, 28, slots)
  set_u64(head, 40, HEAD + SLOT * slots)
  blob:write(0, head)
end }

-- The data at a position: epoch, position.
methods.read = { kind = "query", run = function(cx, blob, input)
  local epoch, position = numbers(cx, input, 2)
  local object = open(cx, blob, epoch)
  local offset, len, state = read_slot(blob, slot_of(cx, object, position))
  if state == UNWRITTEN then
    cx:fail("NotFound", string.format("position %d is not written", position), NOT_WRITTEN)
  elseif state ~= DATA then
    local what = if state == FILLED then "filled" else "trimmed"
    cx:fail("NotFound", string.format("position %d was %s: it has no data", position, what), INVALID)
  end
  return blob:read(offset, len)
end }

-- Writes a position, once: epoch, position, data.
methods.write = { kind = "call", run = function(cx, blob, input)
  local epoch, position = numbers(cx, input, 2)
  local len = buffer.len(input) - 16
  if len > ENTRY_MAX then wrong(cx, "an entry has at most 65536 bytes") end
  local object = open(cx, blob, epoch)
  local slot = slot_of(cx, object, position)
  local _, _, state = read_slot(blob, slot)
  if state ~= UNWRITTEN then
    cx:fail("AlreadyExists", string.format("position %d is taken", position), READ_ONLY)
  end
  if len > 0 then blob:write(object.free, buffer.readstring(input, 16, len)) end
  blob:write(HEAD + SLOT * slot, slot_bytes(object.free, len, DATA))
  local ends = buffer.create(16)
  set_u64(ends, 0, math.max(object.next, position + 1))
  set_u64(ends, 8, object.free + len)
  blob:write(32, ends)
end }

-- Makes a position that was not written one that never will be: epoch, position.
methods.fill = { kind = "call", run = function(cx, blob, input)
  local epoch, position = numbers(cx, input, 2)
  local object = open(cx, blob, epoch)
  local slot = slot_of(cx, object, position)
  local _, _, state = read_slot(blob, slot)
  if state == DATA then
    cx:fail("AlreadyExists", string.format("position %d has data", position), READ_ONLY)
  elseif state == UNWRITTEN then
    blob:write(HEAD + SLOT * slot, slot_bytes(0, 0, FILLED))
  end
end }

-- Forgets what is at a position and the next ones of this object, written or not: epoch, position,
-- how many.
methods.trim = { kind = "call", run = function(cx, blob, input)
  local epoch, position, count = numbers(cx, input, 3)
  local object = open(cx, blob, epoch)
  local slot = slot_of(cx, object, position)
  if count < 1 or slot + count > object.slots then
    wrong(cx, string.format("this object has %d positions from there on", object.slots - slot))
  end
  local one = buffer.tostring(slot_bytes(0, 0, TRIMMED))
  blob:write(HEAD + SLOT * slot, string.rep(one, count))
end }

-- Raises the object's epoch; answers what max_position does: epoch.
methods.seal = { kind = "call", run = function(cx, blob, input)
  local epoch = numbers(cx, input, 1)
  local object = open(cx, blob, epoch)
  if epoch == object.epoch then
    cx:fail("InvalidArgument", string.format("epoch %d is stale: the object has it", epoch), STALE)
  end
  object.epoch = epoch
  local bytes = position_bytes(object)
  blob:write(8, buffer.readstring(bytes, 0, 8))
  return bytes
end }

-- The object's epoch, and the highest position written and one, 0 for none: epoch.
methods.max_position = { kind = "query", run = function(cx, blob, input)
  return position_bytes(open(cx, blob, (numbers(cx, input, 1))))
end }

---------------------------------------------------------------------------------------------------

local function pack(...)
  local all = {}
  for index, number in { ... } do all[index] = string.pack("<I8", number) end
  return table.concat(all)
end

local function code_of(call, method, input)
  local answer, _, _, code = call(method, input)
  return if answer == nil then code else 0
end

local tests = {}

function tests.a_position_is_written_once(blob, call)
  call("init", pack(1, 0, 1, 4))
  assert(code_of(call, "read", pack(1, 2)) == NOT_WRITTEN)
  assert(call("write", pack(1, 2) .. "two"))
  assert(buffer.tostring(call("read", pack(1, 2))) == "two")
  assert(code_of(call, "write", pack(1, 2) .. "2") == READ_ONLY)
  assert(code_of(call, "fill", pack(1, 2)) == READ_ONLY)
end

function tests.what_is_filled_or_trimmed_has_no_data(blob, call)
  call("init", pack(1, 0, 1, 4))
  call("write", pack(1, 0) .. "zero")
  assert(call("fill", pack(1, 1)) and call("fill", pack(1, 1)))
  assert(call("trim", pack(1, 0, 2)))
  assert(code_of(call, "read", pack(1, 0)) == INVALID)
  assert(code_of(call, "write", pack(1, 1) .. "one") == READ_ONLY)
end

function tests.a_seal_refuses_older_epochs(blob, call)
  call("init", pack(1, 10, 2, 4))
  call("write", pack(1, 12) .. "twelve")
  assert(buffer.tostring(call("seal", pack(2))) == pack(2, 13))
  assert(code_of(call, "seal", pack(2)) == STALE)
  assert(code_of(call, "read", pack(1, 12)) == STALE)
  assert(code_of(call, "write", pack(1, 14) .. "") == STALE)
  assert(call("write", pack(3, 14) .. ""))
  assert(buffer.tostring(call("max_position", pack(2))) == pack(2, 15))
end

return { name = "zlog", methods = methods, tests = tests }
