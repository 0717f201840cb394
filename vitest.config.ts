import { configDefaults, type ViteUserConfig } from 'vitest/config';

const config: ViteUserConfig = {
  test: {
    include: ['test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/heavy/**'],
    // A test that passes at the second try is a fault not yet understood.
    retry: 0,
    // More files at once than a small machine has cores make the tests with child processes slow, not the whole fast.
    maxWorkers: 2,
    testTimeout: 20_000,
    hookTimeout: 20_000,
  },
};

export default config;
