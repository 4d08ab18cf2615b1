// The main thread of the Node process: one worker for each module, so that a module
// which throws, exits or never comes back takes nothing along but itself.
// Messages come as lines of JSON on stdin. Answers go to stdout behind a mark, as
// anybody may print there.
const { Worker } = require('node:worker_threads');
const workers = new Map(); // by file: who takes the next call
const calls = new Map(); // by id: who has it
let mark, source;

function send(message) {
  process.stdout.write('\n' + mark + JSON.stringify(message) + '\n');
}

// retire has a worker end after its calls: its module has changed.
function retire(w) {
  w.retired = true;
  if (w.pending.size === 0) w.thread.terminate();
}

function workerOf({ file, version }) {
  let w = workers.get(file);
  if (w && w.version === version) return w;
  if (w) retire(w);
  const thread = new Worker(source, { eval: true, workerData: { file }, stdout: true, stderr: true });
  w = { thread, version, pending: new Map(), why: undefined, retired: false };
  workers.set(file, w);
  const end = (error) => {
    if (workers.get(file) === w) workers.delete(file);
    for (const [id, timer] of w.pending) {
      clearTimeout(timer);
      calls.delete(id);
      send({ id, error });
    }
    w.pending.clear();
  };
  thread.on('message', (m) => {
    clearTimeout(w.pending.get(m.id));
    calls.delete(m.id);
    if (w.pending.delete(m.id)) send(m);
    if (w.retired) retire(w);
  });
  thread.on('error', (e) => end(w.why ?? 'the module threw: ' + (e?.message ?? e)));
  thread.on('exit', (code) => end(w.why ?? 'the module ended its process (exit code ' + code + ')'));
  for (const stream of [thread.stdout, thread.stderr]) {
    stream.setEncoding('utf8');
    stream.on('data', (text) => send({ file, log: text.slice(0, 8000) }));
  }
  return w;
}

// cancel asks a call to stop. One that does not within the grace ends its module.
function cancel(m) {
  const w = calls.get(m.id);
  if (!w) return;
  w.thread.postMessage({ id: m.id, op: 'cancel' });
  w.pending.set(m.id, setTimeout(() => {
    w.why = 'the module was ended, since a call that was to stop did not';
    if (workers.get(m.file) === w) workers.delete(m.file);
    w.thread.terminate();
  }, m.grace));
}

require('node:readline').createInterface({ input: process.stdin, crlfDelay: Infinity }).on('line', (line) => {
  const m = JSON.parse(line);
  if (m.mark) {
    ({ mark, source } = m);
  } else if (m.op === 'cancel') {
    cancel(m);
  } else {
    const w = workerOf(m);
    calls.set(m.id, w);
    w.pending.set(m.id, undefined);
    w.thread.postMessage(m);
  }
}).on('close', () => process.exit(0));
