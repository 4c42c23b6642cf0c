-- The head of a log in the design of CORFU: its views, one for each epoch, in the blob's map.
--
-- The map has the view of an epoch under its number in twenty digits, and in its header the newest
-- epoch in eight bytes. What a view says is its clients' affair. Numbers are u64, little-endian,
-- below 2^53. The class of the same name in Rust (views.rs) does the same, byte for byte.

local VIEW_MAX, ANSWER_MAX = 32768, 65536
local WRONG, EXISTS = -22, -17

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

local function number(cx, input, at)
  if buffer.len(input) < at + 8 then wrong(cx, "the input is too short") end
  local found = u64(input, at)
  if found >= 2 ^ 53 then wrong(cx, "numbers are below 2^53") end
  return found
end

local function key(epoch)
  return string.format("%020d", epoch)
end

-- How many views there are: the newest epoch and one.
local function count(blob)
  local header = blob.map:header()
  return if buffer.len(header) == 8 then u64(header, 0) + 1 else 0
end

local methods = {}

-- Adds the view of the next epoch, 0 for the first: epoch, view.
methods.create_view = { kind = "call", run = function(cx, blob, input)
  local epoch, next = number(cx, input, 0), count(blob)
  if buffer.len(input) - 8 > VIEW_MAX then wrong(cx, "a view has at most 32768 bytes") end
  if epoch < next then
    cx:fail("AlreadyExists", string.format("there is a view of epoch %d", epoch), EXISTS)
  elseif epoch > next then
    wrong(cx, string.format("the next view is of epoch %d, not %d", next, epoch))
  end
  blob.map:set(key(epoch), buffer.readstring(input, 8, buffer.len(input) - 8))
  blob.map:header(buffer.readstring(input, 0, 8))
end }

-- Views from an epoch on, and how many there are in all: epoch, how many at most. The answer begins
-- with that number; each view has its epoch, its length, and its bytes. As many as 64 KiB hold.
methods.read_views = { kind = "query", run = function(cx, blob, input)
  local from, wanted, total = number(cx, input, 0), number(cx, input, 8), count(blob)
  local answer, at = buffer.create(ANSWER_MAX), 8
  set_u64(answer, 0, total)
  for epoch = from, math.min(total, from + wanted) - 1 do
    local view = blob.map:get(key(epoch))
    local len = buffer.len(view)
    if at + 16 + len > ANSWER_MAX then break end
    set_u64(answer, at, epoch)
    set_u64(answer, at + 8, len)
    buffer.copy(answer, at + 16, view)
    at += 16 + len
  end
  return buffer.readstring(answer, 0, at)
end }

---------------------------------------------------------------------------------------------------

local function pack(...)
  local all = {}
  for index, number in { ... } do all[index] = string.pack("<I8", number) end
  return table.concat(all)
end

local tests = {}

function tests.epochs_have_no_gap_and_are_taken_once(blob, call)
  assert(call("create_view", pack(1) .. "early") == nil)
  assert(call("create_view", pack(0) .. "first"))
  assert(call("create_view", pack(1) .. "second"))
  local answer, kind = call("create_view", pack(1) .. "late")
  assert(answer == nil and kind == "AlreadyExists")
  assert(buffer.tostring(call("read_views", pack(1, 5))) == pack(2, 1, 6) .. "second")
  assert(buffer.tostring(call("read_views", pack(7, 5))) == pack(2))
end

return { name = "zlog_view", methods = methods, tests = tests }
