#!/usr/bin/env node
// The start of the command line. Kept to syntax that Node 12 reads and without imports of its own, so that an old Node
// gets as far as telling its user what is wrong, instead of stopping at a file that it cannot read.

const [major, minor] = process.versions.node.split('.').map(Number);

if (major > 22 || (major === 22 && minor >= 12)) {
  start().catch((error) => {
    process.stderr.write(`${String((error && error.stack) || error)}\n`);
    process.exitCode = 1;
  });
} else {
  complain(
    `needs Node 22.12 or newer; this is ${process.versions.node}.`,
    'Run through npm (`npm run onlyonce -- ...`), which uses the pinned Node 24, or install Node 22.12+.',
  );
}

/** A checkout runs its sources, the published package has only the built files. */
async function start() {
  const { existsSync } = await import('node:fs');
  const source = new URL('../src/cli/main.ts', import.meta.url);
  const built = new URL('../dist/cli/main.js', import.meta.url);
  const hasSource = existsSync(source);
  // False before Node 22.18 and 23.6, which do not read TypeScript by themselves.
  const readsTypeScript = Boolean(process.features.typescript);
  if (hasSource && readsTypeScript) {
    await import(source.href);
  } else if (existsSync(built)) {
    await import(built.href);
  } else if (hasSource) {
    complain(
      `runs from TypeScript here, which Node ${process.versions.node} does not read by itself.`,
      'Run through npm (`npm run onlyonce -- ...`), which uses the pinned Node 24, or build first (`npm run build`).',
    );
  } else {
    complain('is incomplete: its built files (dist) are missing.', 'Install the package again.');
  }
}

function complain(fault, advice) {
  process.stderr.write(`onlyonce ${fault}\n${advice}\n`);
  process.exitCode = 1;
}
