// A worker has one module. It finds the tool in it and runs its calls.
const { parentPort, workerData } = require('node:worker_threads');
const { pathToFileURL } = require('node:url');
const running = new Map(); // by id, what cancels the call

function find(module) {
  for (const found of [module.default, module]) {
    if (!found?.function) continue;
    const run = found.exec ?? found.callback;
    if (typeof run !== 'function') throw new Error('there is a function, but neither exec nor callback to run');
    return { found, run };
  }
  const names = Object.keys(module).filter((name) => name !== 'default' && name !== 'module.exports');
  const nothing = !('default' in module) ||
    typeof module.default === 'object' && module.default !== null && Object.keys(module.default).length === 0;
  if (names.length === 0 && nothing) return null;
  throw new Error('it exports no tool: { function: { name, description, parameters }, exec }');
}

function textOf(value) {
  return typeof value === 'string' ? value : JSON.stringify(value) ?? '';
}

const tool = import(pathToFileURL(workerData.file).href).then(find);
tool.catch(() => {}); // each call reports it

parentPort.on('message', async ({ id, op, args }) => {
  if (op === 'cancel') {
    running.get(id)?.abort();
    return;
  }
  try {
    const t = await tool;
    if (op === 'load') {
      parentPort.postMessage({ id, value: t && JSON.stringify({ function: t.found.function, timeout: t.found.timeout, hints: t.found.hints }) });
      return;
    }
    if (!t) throw new Error('the module exports no tool any more');
    const stop = new AbortController();
    running.set(id, stop);
    parentPort.postMessage({ id, value: textOf(await t.run.call(t.found, args, { signal: stop.signal })) });
  } catch (e) {
    parentPort.postMessage({ id, error: String(e?.message ?? e), stack: e?.stack });
  } finally {
    running.delete(id);
  }
});
