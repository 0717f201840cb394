/**
 * The parent's side of the reaper: one reaper process per parent, started with the first child. What it is told is
 * kept here too, so that a reaper that was itself killed can be replaced.
 */
import { spawn } from 'node:child_process';
import type { Writable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { EnvironmentError } from '../errors.ts';
import { identityOf, type ProcessIdentity } from './process-identity.ts';

/** More than this many deaths of the reaper are no accident, and starting it again would not help. */
const MAX_STARTS = 5;

// Module state on purpose: the list belongs to this process, whoever in it starts children.
const listed = new Map<number, ProcessIdentity>();
let input: Writable | undefined;
let starts = 0;

/**
 * The path of an entry file beside the calling module, with the module's own ending: `.ts` from source, `.js` when built.
 * @param moduleUrl the caller's `import.meta.url`.
 */
export function siblingEntry(name: string, moduleUrl: string): string {
  const ending = new URL(moduleUrl).pathname.endsWith('.ts') ? '.ts' : '.js';
  return fileURLToPath(new URL(`./${name}${ending}`, moduleUrl));
}

/** Makes sure the reaper runs. Call it before a child is started, so that no child is ever without one. */
export function ensureReaper(): void {
  if (input !== undefined || starts >= MAX_STARTS) return;
  starts += 1;
  // NODE_OPTIONS is for the parent: a debugger port or a preloaded module would only disturb the reaper.
  const { NODE_OPTIONS: _unused, ...env } = process.env;
  const reaper = spawn(process.execPath, [siblingEntry('reaper', import.meta.url)], {
    // A session of its own: Ctrl-C on the terminal ends the parent, not this.
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
    env,
    windowsHide: true,
  });
  reaper.on('error', () => undefined);
  if (reaper.pid === undefined)
    throw new EnvironmentError(`could not start ${process.execPath} to watch over child processes`);
  reaper.on('exit', replace);
  const stdin: Writable & { unref?: () => void } = reaper.stdin;
  stdin.on('error', () => undefined);
  // The reaper lives exactly as long as this process and must not keep it alive.
  reaper.unref();
  stdin.unref?.();
  input = stdin;
  for (const identity of listed.values()) tell(identity);
}

/** Lists a child that has just been spawned. @returns what takes it off the list again. */
export function watchOver(pid: number): () => void {
  const identity = identityOf(pid);
  listed.set(pid, identity);
  tell(identity);
  return () => {
    if (listed.delete(pid)) input?.write(`-${String(pid)}\n`);
  };
}

function tell(identity: ProcessIdentity): void {
  input?.write(`+${String(identity.pid)} ${identity.startTicks ?? ''}\n`);
}

function replace(): void {
  input = undefined;
  if (listed.size > 0) ensureReaper();
}
