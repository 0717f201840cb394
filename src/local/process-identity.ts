/**
 * Tells whether a process is still the one that was meant. A pid alone does not: it is used again after its process ended.
 */
import { readFileSync } from 'node:fs';

/** A pid, and when its process began (in kernel ticks since boot). Without /proc there is no start time. */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startTicks: string | undefined;
}

/** Reads the identity of a process that runs now. Right after `spawn` it is safe: an unreaped pid is not reused. */
export function identityOf(pid: number): ProcessIdentity {
  return { pid, startTicks: readStat(pid)?.startTicks };
}

/** True while that very process runs. A zombie has ended: only its exit code waits to be read. */
export function isRunning(identity: ProcessIdentity): boolean {
  if (process.platform === 'linux') {
    const stat = readStat(identity.pid);
    if (stat === undefined || stat.state === 'Z' || stat.state === 'X') return false;
    return identity.startTicks === undefined || stat.startTicks === identity.startTicks;
  }
  try {
    return process.kill(identity.pid, 0);
  } catch {
    return false;
  }
}

/** Sends the signal if that very process still runs. A process that ended meanwhile is not a fault. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): void {
  if (!isRunning(identity)) return;
  try {
    process.kill(identity.pid, signal);
  } catch {
    // It ended between the look and the signal.
  }
}

function readStat(pid: number): { state: string; startTicks: string } | undefined {
  try {
    const text = readFileSync(`/proc/${String(pid)}/stat`, 'utf8');
    // Field 2 is the program's name in brackets and may hold spaces and brackets itself: count from the last one.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const state = fields[0];
    const startTicks = fields[19];
    return state === undefined || startTicks === undefined ? undefined : { state, startTicks };
  } catch {
    return undefined;
  }
}
