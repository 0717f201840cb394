/**
 * The two servers behind `onlyonce up`: SQS as a library, DynamoDB as a program. Nothing is started by importing this.
 */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

export async function buildQueueApp() {
  // Loaded on demand: whoever only asks for the DynamoDB program should not pay for the SQS server.
  const { buildApp } = await import('fauxqs');
  return buildApp({ logger: false });
}

export function dynoxideBinary() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined;
  try {
    const manifest = createRequire(import.meta.url).resolve('@dynoxide/linux-x64/package.json');
    const binary = join(dirname(manifest), 'dynoxide');
    return existsSync(binary) ? binary : undefined;
  } catch {
    // An optional dependency: its absence is an answer, not a fault.
    return undefined;
  }
}
