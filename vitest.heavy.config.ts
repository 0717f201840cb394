import type { ViteUserConfig } from 'vitest/config';

/** Tests that run many processes, kill them, or install packages: one file at a time, with time to spare. */
const config: ViteUserConfig = {
  test: {
    include: ['test/heavy/**/*.test.ts'],
    retry: 0,
    fileParallelism: false,
    testTimeout: 300_000,
    hookTimeout: 300_000,
  },
};

export default config;
