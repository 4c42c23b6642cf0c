//! Scripts of classes that mean no good, drawn from a seed.

use crate::random::Random;

/// A class.
pub(super) struct Script {
    /// Its name.
    pub class: String,
    /// What is wrong with it, in a word.
    pub kind: &'static str,
    /// Its source, which need not be text.
    pub source: Vec<u8>,
}

/// What methods do, by kind. `N` is a number that is drawn.
const BODIES: [(&str, &[&str]); 7] = [
    (
        "loop",
        &[
            "while true do end",
            "repeat until N < 0",
            "for i = 1, 1 / 0 do end",
            "local n = N while true do n = n * 3 % 1000003 end",
            "local function f() while true do end end while true do pcall(f) end",
            "local function f() pcall(f) pcall(f) end while true do f() end",
            "while true do \
             coroutine.resume(coroutine.create(function() while true do end end)) end",
            "local f = coroutine.wrap(function() while true do coroutine.yield(N) end end) \
             while true do f() end",
            "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) \
             while true do pcall(function() return t[N] end) end",
            "return tostring(setmetatable({}, { __tostring = function() while true do end end }))",
            "table.sort({ 3, 2, N }, function() while true do end end)",
            "while true do cx:log('info', 'N') end",
            "while true do blob:read(0, N) end",
        ],
    ),
    (
        "memory",
        &[
            "return ('x'):rep(2 ^ 30 + N)",
            "local t = {} while true do t[#t + 1] = ('x'):rep(2 ^ 16) .. #t end",
            "local t = {} for i = 1, 1e9 do t[i] = i + N end",
            "local s = 'N' while true do s ..= s end",
            "return table.create(2 ^ 26 + N)",
            "return buffer.create(2 ^ 29 + N)",
            "while true do pcall(string.rep, 'x', 2 ^ 30 + N) end",
            "while true do pcall(buffer.create, 2 ^ 29 + N) end",
            "local t = {} while true do t[#t + 1] = coroutine.create(function() return N end) end",
            "return table.concat(table.create(2 ^ 16, ('x'):rep(2 ^ 12 + N)))",
            // As much as may stay behind in a machine that is kept, and no answer of its own.
            "left = {} for i = 1, 6 do left[i] = buffer.create(2 ^ 20 + N) end error('N')",
            "local t = {} for i = 1, 6 do t[i] = ('x'):rep(2 ^ 20 + N) end error('N')",
        ],
    ),
    (
        "pattern",
        &[
            "return ('a'):rep(40 + N % 50):find(('a*'):rep(20) .. 'b')",
            "return ('x'):rep(2 ^ 20):match('.-.-.-.-y')",
            "local text = ('a'):rep(2 ^ 21) return text:find(('a'):rep(2 ^ 20) .. 'b', 1, true)",
            "return ('('):rep(100 + N):find(('('):rep(100))",
            "return ('x'):rep(300000):match(('(x)'):rep(40))",
            "return ('ab'):rep(2 ^ 18):gsub('(.-)(.-)(.-)c', '%1%2%3')",
        ],
    ),
    (
        "recursion",
        &[
            "local function f(n) return 1 + f(n + 1) end return f(N)",
            "local meta = {} meta.__index = function(t, k) return t[k] .. '' end \
             return setmetatable({}, meta).x",
            "local function f() return (('x'):gsub('x', f)) end return f()",
            "local function f() return table.sort({ 3, 2, N }, f) end return f()",
            "local function f() return coroutine.wrap(f)() end return f()",
            "local t = {} t.t = t setmetatable(t, { __concat = function(a, b) return a .. b end }) \
             return t .. 'N'",
        ],
    ),
    (
        "answer",
        &[
            "return ('x'):rep(2 ^ 17 + N)",
            "return buffer.create(2 ^ 20 + N)",
            "return { N }",
            "return function() return N end",
            "cx:fail('Conflict?', ('x'):rep(100000 + N))",
            "error(('x'):rep(100000 + N))",
            "error({ N })",
        ],
    ),
    (
        "flood",
        &[
            "while true do blob:write(0, ('x'):rep(2 ^ 16 + N)) end",
            "while true do pcall(blob.append, blob, 'N') end",
            "for i = 1, 1e6 do blob.map:set(tostring(i + N), '') end",
            "blob:truncate(2 ^ 24 + N) blob:read(0, 2 ^ 53)",
            "blob:write(-N - 1, 'x')",
            "blob:write(2 ^ 60, 'x')",
            "blob.map:set(('k'):rep(2000 + N), 'x')",
            "blob.map:set('k', ('x'):rep(2 ^ 17 + N))",
        ],
    ),
    (
        "escape",
        &[
            "return os.execute('N')",
            "return io.open('/etc/passwd'):read('*a')",
            "return require('N')",
            "return debug.getinfo(N)",
            "string.rep = function() return 'N' end",
            "getmetatable('').__index = { N }",
            "return loadstring('return N')()",
            "_G.tostring = nil return tostring(N)()",
            "setfenv(1, {}) return collectgarbage('count')",
        ],
    ),
];

/// Kinds of text that is no script.
const MALFORMED: u64 = 9;

/// A class of this number.
pub(super) fn draw(number: u64, random: &mut Random) -> Script {
    let class = format!("hostile_{number}");
    match random.below(10) {
        0 => forged(class, random),
        1 => malformed(class, random),
        _ => {
            let (kind, bodies) = random.pick(&BODIES);
            let body = random.pick(bodies).replace('N', &random.below(1_000).to_string());
            // Where the script runs for the first time, in place of a method.
            let (first, body) = match random.below(6) {
                0 if kind != "flood" && kind != "answer" => (body, String::new()),
                _ => (String::new(), body),
            };
            let first =
                if first.is_empty() { first } else { format!("(function() {first} end)()") };
            let method = ["call", "query"][random.below(2) as usize];
            let source = format!(
                "{first}\nreturn {{ name = \"{class}\", methods = {{ run = {{ kind = \"{method}\", \
                 run = function(cx, blob, input) {body} end }} }} }}"
            );
            Script { class, kind, source: source.into_bytes() }
        }
    }
}

/// Compiled code, or what passes for it, of Luau and of other Luas.
fn forged(class: String, random: &mut Random) -> Script {
    let noise = |random: &mut Random, len| (0..len).map(|_| random.any() as u8).collect::<Vec<_>>();
    let len = 1 + random.below(3_000);
    let source = match random.below(5) {
        0 => [&[random.between(1, 11) as u8][..], &[3, 1], &noise(random, len)].concat(),
        1 => [&b"\x1bLua"[..], &noise(random, len)].concat(),
        2 => [&b"\x1bLJ\x02"[..], &noise(random, len)].concat(),
        3 => noise(random, len),
        _ => [b"return ".to_vec(), vec![0], noise(random, len)].concat(),
    };
    Script { class, kind: "forged", source }
}

/// Text that no compiler is glad of.
fn malformed(class: String, random: &mut Random) -> Script {
    let times = 2_000 + random.below(6_000) as usize;
    let text = match random.below(MALFORMED) {
        0 => "(".repeat(times),
        1 => format!("return {}1{}", "{".repeat(times), "}".repeat(times)),
        2 => format!("return {}1", "-".repeat(times)),
        3 => format!("return {}", "'a' .. ".repeat(times)),
        4 => "if true then ".repeat(times),
        5 => "local a = function() ".repeat(times),
        6 => "local a = 1 ".repeat(times),
        7 => format!("return '{}", "\\u{110000}".repeat(times)),
        _ => format!("return {}", "not ".repeat(times)),
    };
    Script { class, kind: "malformed", source: text.into_bytes() }
}
