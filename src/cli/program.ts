/** All commands. Each has a file of its own under commands/. */
import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { bootstrapCommand } from './commands/bootstrap.ts';
import { demoCommand } from './commands/demo.ts';
import { dlqCommand } from './commands/dlq.ts';
import { effectsCommand } from './commands/effects.ts';
import { patternCommand } from './commands/pattern.ts';
import { injectCommand } from './commands/inject.ts';
import { produceCommand } from './commands/produce.ts';
import { queuesCommand } from './commands/queues.ts';
import { uniqueCommand } from './commands/unique.ts';
import { upCommand } from './commands/up.ts';
import { verifyCommand } from './commands/verify.ts';
import { workCommand } from './commands/work.ts';

const EXIT_CODES = `
Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 5 conflict, 6 findings, 130 interrupted.
Data goes to stdout, everything else to stderr. Every flag has an environment variable; the flag wins.`;

export function createProgram(): Command {
  const program = new Command('onlyonce')
    .description('SQS workers whose effects happen only once')
    .version(packageVersion())
    .addHelpText('after', EXIT_CODES)
    .showHelpAfterError('(add --help for all options)')
    .exitOverride();
  const commands = [
    demoCommand(),
    upCommand(),
    bootstrapCommand(),
    produceCommand(),
    workCommand(),
    verifyCommand(),
    effectsCommand(),
    queuesCommand(),
    dlqCommand(),
    injectCommand(),
    patternCommand(),
    uniqueCommand(),
  ];
  for (const command of commands) program.addCommand(inherit(command));
  return program;
}

/** Commands made on their own do not take over their parent's settings: a usage fault must end in exit code 2. */
function inherit(command: Command): Command {
  command.exitOverride().showHelpAfterError('(add --help for all options)');
  for (const option of command.options) {
    const { envVar } = option;
    // Commander only looks whether a variable is there: ONLYONCE_YES=false must not mean yes, nor an empty one anything.
    const off = option.isBoolean() ? /^(|0|false|no|off)$/i : /^$/;
    if (envVar !== undefined && off.test(process.env[envVar] ?? 'not set')) delete process.env[envVar];
  }
  for (const child of command.commands) inherit(child);
  return command;
}

function packageVersion(): string {
  const manifest: unknown = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8'));
  const hasVersion = typeof manifest === 'object' && manifest !== null && 'version' in manifest;
  return hasVersion ? String(manifest.version) : 'unknown';
}
