/**
 * Who may import whom. The only place that decides it; docs/architecture.md shows the same as a picture.
 * Leaves import nothing of ours but leaves; everything else imports downwards.
 */
const LAYERS = {
  leaves: ['errors.ts', 'clock.ts', 'backoff.ts', 'or-aborted.ts', 'aws-fault.ts', 'messages/'],
  store: ['store/'],
  patterns: ['patterns/'],
  queues: ['queues/'],
  payments: ['payments/'],
  telemetry: ['telemetry/'],
  local: ['local/'],
  producers: ['producers/'],
  workers: ['workers/'],
  index: ['index.ts'],
  verify: ['verify/'],
  chaos: ['chaos/'],
  dashboard: ['dashboard/'],
  cli: ['cli/'],
};

/** What the programs above the library may use of it. */
const LIBRARY = ['leaves', 'store', 'queues', 'payments', 'telemetry', 'producers', 'workers', 'index'];

/** For each layer, the layers that it may import besides itself. Producers and workers must stay apart. */
const MAY_IMPORT = {
  leaves: [],
  store: ['leaves'],
  patterns: ['leaves', 'store'],
  queues: ['leaves'],
  payments: ['leaves'],
  telemetry: ['leaves'],
  local: ['leaves'],
  producers: ['leaves', 'store', 'queues'],
  workers: ['leaves', 'store', 'queues', 'payments', 'telemetry'],
  index: ['leaves', 'store', 'queues', 'payments', 'telemetry', 'producers', 'workers'],
  verify: ['leaves', 'store', 'queues', 'payments'],
  chaos: [...LIBRARY, 'verify', 'local'],
  dashboard: [...LIBRARY, 'verify'],
  cli: [...LIBRARY, 'patterns', 'verify', 'local', 'chaos', 'dashboard'],
};

function pathOf(...layers) {
  const parts = layers.flatMap((layer) => LAYERS[layer]).map((part) => part.replace('.', '\\.'));
  return `^src/(${parts.map((part) => (part.endsWith('/') ? part : `${part}$`)).join('|')})`;
}

const layerRules = Object.entries(MAY_IMPORT).map(([layer, below]) => ({
  name: `layer-${layer}`,
  severity: 'error',
  comment: `src's ${layer} may import only: ${[layer, ...below].join(', ')}.`,
  from: { path: pathOf(layer) },
  to: { path: '^src/', pathNot: pathOf(layer, ...below) },
}));

export default {
  forbidden: [
    {
      name: 'no-cycles',
      severity: 'error',
      comment: 'Modules of a cycle can only be understood, tested and loaded together. Types count as well.',
      from: {},
      to: { circular: true },
    },
    ...layerRules,
    {
      name: 'every-module-has-a-layer',
      severity: 'error',
      comment: 'A new file or folder at the top of src needs a place in LAYERS, or no rule would hold for it.',
      from: { path: '^src/', pathNot: pathOf(...Object.keys(LAYERS)) },
      to: {},
    },
    {
      name: 'dynamodb-client-only-in-store',
      severity: 'error',
      comment:
        'What keeps effects single is decided by condition expressions; they all live in src/store. The walk-throughs of ' +
        'src/patterns also show what goes wrong without, by bare requests on tables of their own.',
      from: { path: '^src/', pathNot: '^src/(store|patterns)/' },
      to: { path: '(^|/)@aws-sdk/(client-dynamodb|lib-dynamodb|util-dynamodb)(/|$)' },
    },
    {
      name: 'sqs-client-only-at-the-queue',
      severity: 'error',
      comment: 'Only what sends, receives or administers messages talks to SQS.',
      from: { path: '^src/', pathNot: '^src/(producers|workers|queues|cli/queues)/' },
      to: { path: '(^|/)@aws-sdk/client-sqs(/|$)' },
    },
    {
      name: 'src-stands-alone',
      severity: 'error',
      comment: 'The published package holds dist only: tests, benchmarks, examples and scripts are not in it.',
      from: { path: '^src/' },
      to: { path: '^(test|bench|examples|scripts)/' },
    },
    {
      name: 'local-backends-only-on-demand',
      severity: 'error',
      comment: 'The local backends are not installed in production: they may be imported only when they are asked for.',
      from: { path: '^src/' },
      to: { path: '(^|/)(onlyonce-)?local-backends(/|$)', dynamic: false },
    },
    {
      name: 'only-production-dependencies-in-src',
      severity: 'error',
      comment: 'What package.json does not list under dependencies is not installed with the published package.',
      from: { path: '^src/' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg', 'npm-unknown'], pathNot: 'local-backends' },
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      comment: 'An import that leads nowhere hides all that lies behind it from the other rules.',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // TypeScript 7 has no API that dependency-cruiser could use; without swc it would read no .ts file at all and pass.
    parser: 'swc',
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'default'] },
  },
};
