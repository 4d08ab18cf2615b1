// The main thread of the Node process: one worker for each module, so that a module
// which throws, exits or never comes back takes nothing along but itself.
// Messages come as lines of JSON on stdin. Answers go to stdout behind a mark, as
// anybody may print there.
const { Worker } = require('node:worker_threads');
const workers = new Map(); // by file
let mark, source;

function send(message) {
  process.stdout.write('\n' + mark + JSON.stringify(message) + '\n');
}

function workerOf(file) {
  let w = workers.get(file);
  if (w) return w;
  const thread = new Worker(source, { eval: true, workerData: { file }, stdout: true, stderr: true });
  w = { thread, pending: new Map(), why: undefined };
  workers.set(file, w);
  const end = (error) => {
    if (workers.get(file) === w) workers.delete(file);
    for (const [id, timer] of w.pending) {
      clearTimeout(timer);
      send({ id, error });
    }
    w.pending.clear();
  };
  thread.on('message', (m) => {
    clearTimeout(w.pending.get(m.id));
    if (w.pending.delete(m.id)) send(m);
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
  const w = workers.get(m.file);
  if (!w?.pending.has(m.id)) return;
  w.thread.postMessage({ id: m.id, op: 'cancel' });
  w.pending.set(m.id, setTimeout(() => {
    w.why = 'the module was ended, since a call that was to stop did not';
    workers.delete(m.file);
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
    const w = workerOf(m.file);
    w.pending.set(m.id, undefined);
    w.thread.postMessage(m);
  }
}).on('close', () => process.exit(0));
