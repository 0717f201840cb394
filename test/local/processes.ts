import { readFileSync, readdirSync } from 'node:fs';
import { identityOf, type ProcessIdentity } from '../../src/local/process-identity.ts';

/** The direct children of a process, whichever of its threads started them. Linux only. */
export function childrenOf(pid: number): ProcessIdentity[] {
  const tasks = `/proc/${String(pid)}/task`;
  return readdirSync(tasks)
    .flatMap((task) => read(`${tasks}/${task}/children`).split(' '))
    .filter((child) => child.trim() !== '')
    .map((child) => identityOf(Number(child)));
}

/** The command line of a process, arguments separated by spaces; empty when it has ended. Linux only. */
export function commandOf(pid: number): string {
  return read(`/proc/${String(pid)}/cmdline`).replaceAll('\0', ' ');
}

/** The state letter of a process: R, S, T (stopped), Z (ended)... Linux only. */
export function stateOf(pid: number): string | undefined {
  const stat = read(`/proc/${String(pid)}/stat`);
  return stat.slice(stat.lastIndexOf(')') + 2)[0];
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // It ended while it was looked at.
    return '';
  }
}
