/**
 * Entry of the reaper process: ends the children of a parent that is gone, however it went. SIGKILL leaves a parent no
 * time to clean up, but the kernel closes its end of our stdin; that is the one sign this process waits for.
 *
 * Lines on stdin: `+<pid> <startTicks>` lists a child, `-<pid>` takes it off the list.
 * It outlives signals meant for the parent's terminal, holds no port and no file, and never ends before its parent.
 */
import { createInterface } from 'node:readline';
import { sleep, systemClock } from '../clock.ts';
import { isRunning, signalProcess, type ProcessIdentity } from './process-identity.ts';

/** How long a child may take to end by itself after SIGTERM. Unit: ms. */
const GRACE_MS = 2_000;
const LOOK_EVERY_MS = 25;

async function main(): Promise<void> {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => undefined);
  const listed = new Map<number, ProcessIdentity>();
  await parentGone(listed);
  await endAll([...listed.values()]);
  process.exit(0);
}

function parentGone(listed: Map<number, ProcessIdentity>): Promise<void> {
  return new Promise((resolve) => {
    // A reset pipe tells the same as a closed one.
    process.stdin.on('error', () => {
      resolve();
    });
    const lines = createInterface({ input: process.stdin });
    lines.on('line', (line) => {
      record(listed, line);
    });
    lines.on('close', resolve);
  });
}

function record(listed: Map<number, ProcessIdentity>, line: string): void {
  const [pidText = '', startTicks] = line.slice(1).split(' ');
  const pid = Number(pidText);
  // kill(0) and kill(-1) mean whole groups of processes; nothing but a plain pid may ever get into the list.
  if (!Number.isSafeInteger(pid) || pid <= 1) return;
  if (line.startsWith('+')) listed.set(pid, { pid, startTicks: startTicks === '' ? undefined : startTicks });
  if (line.startsWith('-')) listed.delete(pid);
}

async function endAll(children: readonly ProcessIdentity[]): Promise<void> {
  for (const child of children) {
    signalProcess(child, 'SIGTERM');
    // A stopped process receives SIGTERM only once it runs again.
    signalProcess(child, 'SIGCONT');
  }
  const deadlineMs = systemClock.monotonicMs() + GRACE_MS;
  while (children.some(isRunning) && systemClock.monotonicMs() < deadlineMs) await sleep(systemClock, LOOK_EVERY_MS);
  for (const child of children) signalProcess(child, 'SIGKILL');
}

await main();
