import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SampleProject } from './sample-project.ts';

interface PlantedFault {
  /** Completes "fails on ...". */
  readonly fault: string;
  readonly check: 'types' | 'lint' | 'format' | 'boundaries' | 'unused';
  /** What the output must name. */
  readonly named: readonly string[];
  plant(sample: SampleProject): void;
}

/** Faults of one check share a run where they can: each run costs a second. */
const PLANTED_FAULTS: readonly PlantedFault[] = [
  {
    fault: 'a value of the wrong type',
    check: 'types',
    named: ['src/workers/worker.ts', 'TS2322'],
    plant: (sample) => {
      sample.append('src/workers/worker.ts', "\nexport const attempts: number = 'one';\n");
    },
  },
  {
    fault: 'a floating promise, a clock or chance of its own, a forgotten status',
    check: 'lint',
    named: [
      'typescript(no-floating-promises)',
      'src/index.ts:5:1',
      'eslint(no-restricted-globals)',
      'src/store/table.ts:8:35',
      'eslint(no-restricted-properties)',
      'src/store/table.ts:9:29',
      'typescript(switch-exhaustiveness-check)',
      'src/workers/worker.ts:8:11',
    ],
    plant: (sample) => {
      sample.append('src/index.ts', "\nimport { produce } from './producers/producer.ts';\nproduce();\n");
      sample.append('src/store/table.ts', '\nexport const openedAtMs: number = Date.now();\n');
      sample.append('src/store/table.ts', 'export const draw: number = Math.random();\n');
      sample.append(
        'src/workers/worker.ts',
        "\nexport function act(on: 'a' | 'b'): void {\n  switch (on) {\n    case 'a':\n      work();\n  }\n}\n",
      );
    },
  },
  {
    fault: 'a space too many',
    check: 'format',
    named: ['src/store/table.ts'],
    plant: (sample) => {
      sample.append('src/store/table.ts', '\nexport const  wide = 1;\n');
    },
  },
  {
    fault: 'an ignore file that hides the sources',
    check: 'format',
    named: ['every-file-is-read: src/index.ts was not read'],
    plant: (sample) => {
      sample.append('.prettierignore', 'src/\n');
    },
  },
  {
    fault: 'cycles, forbidden imports and a folder named utils',
    check: 'boundaries',
    named: [
      'no-cycles: src/store/narrow.ts -> src/store/wide.ts -> src/store/narrow.ts',
      'no-cycles: src/store/long-type.ts -> src/store/short-type.ts -> src/store/long-type.ts',
      'layer-workers: src/workers/worker.ts -> src/producers/producer.ts',
      'layer-producers: src/producers/producer.ts -> src/telemetry/logger.ts',
      'every-module-has-a-layer: src/elsewhere/new.ts',
      'dynamodb-client-only-in-store: src/cli/main.ts',
      'sqs-client-only-at-the-queue: src/store/table.ts',
      'src-stands-alone: src/index.ts -> test/work.test.ts',
      'only-production-dependencies-in-src: src/index.ts',
      'no-catch-all-names: src/store/utils/depth.ts',
    ],
    plant: (sample) => {
      sample.write('src/store/wide.ts', "import { narrow } from './narrow.ts';\n\nexport const wide = narrow;\n");
      sample.write('src/store/narrow.ts', "import { wide } from './wide.ts';\n\nexport const narrow = wide;\n");
      sample.write(
        'src/store/long-type.ts',
        "import type { Short } from './short-type.ts';\nexport type Long = Short;\n",
      );
      sample.write(
        'src/store/short-type.ts',
        "import type { Long } from './long-type.ts';\nexport type Short = Long;\n",
      );
      sample.prepend('src/workers/worker.ts', "import '../producers/producer.ts';\n");
      sample.write('src/telemetry/logger.ts', 'export const logger = 1;\n');
      sample.prepend('src/producers/producer.ts', "import '../telemetry/logger.ts';\n");
      sample.write('src/elsewhere/new.ts', "import '../clock.ts';\n");
      sample.prepend('src/cli/main.ts', "import '@aws-sdk/client-dynamodb';\n");
      sample.prepend('src/store/table.ts', "import '@aws-sdk/client-sqs';\n");
      sample.prepend('src/index.ts', "import '../test/work.test.ts';\nimport 'prettier';\n");
      sample.write('src/store/utils/depth.ts', 'export const depth = 1;\n');
    },
  },
  {
    // What dependency-cruiser did without swc: it read no .ts file and passed.
    fault: 'a run of its tool that read no file',
    check: 'boundaries',
    named: ['every-file-is-read: src/index.ts was not read', 'every-file-is-read: no import was found'],
    plant: (sample) => {
      const rules = sample.read('.dependency-cruiser.mjs');
      sample.write('.dependency-cruiser.mjs', rules.replace("parser: 'swc'", "includeOnly: '^nowhere/'"));
    },
  },
  {
    fault: 'a src without sources',
    check: 'boundaries',
    named: ['every-file-is-read: there is no .ts file in src'],
    plant: (sample) => {
      sample.remove('src');
      sample.write('src/notes.txt', 'nothing to see');
    },
  },
  {
    fault: 'an export and a module that nobody imports',
    check: 'unused',
    named: ['Unused exports', 'spare', 'Unused files', 'src/store/orphan.ts'],
    plant: (sample) => {
      sample.append('src/store/table.ts', '\nexport const spare = 1;\n');
      sample.write('src/store/orphan.ts', 'export const orphan = 1;\n');
    },
  },
  {
    fault: 'sources that are not where it looks',
    check: 'unused',
    named: ['src/cli/main.ts', 'no matches'],
    plant: (sample) => {
      sample.remove('src');
    },
  },
];

describe('npm run check', () => {
  let sample: SampleProject;

  beforeEach(() => {
    sample = new SampleProject();
  });

  afterEach(() => {
    sample[Symbol.dispose]();
  });

  it('passes a project without faults', () => {
    const { exitCode, output } = sample.run('check');

    expect(output).toContain('no faults');
    expect(exitCode).toBe(0);
  });

  it.each(PLANTED_FAULTS)('check:$check fails on $fault', ({ check, named, plant }) => {
    plant(sample);

    const { exitCode, output } = sample.run(`check:${check}`);

    for (const name of named) expect(output).toContain(name);
    expect(exitCode).toBe(1);
  });
});
