import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { EnvironmentError } from '../../src/errors.ts';
import { findDynoxide } from '../../src/local/dynoxide.ts';

test.skipIf(process.platform === 'win32')(
  'DYNOXIDE_BIN that is not executable or not a file is an error that says so',
  () => {
    // Arrange
    const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
    const plain = join(folder, 'dynoxide');
    writeFileSync(plain, '', { mode: 0o644 });

    // Act
    const find = (path: string) => () => findDynoxide(undefined, { DYNOXIDE_BIN: path });

    // Assert
    expect(find(plain)).toThrow('which is not executable');
    expect(find(folder)).toThrow('which is not a file');
    rmSync(folder, { recursive: true });
  },
);

test.skipIf(process.platform === 'win32')(
  'the program is taken from DYNOXIDE_BIN, then the package, then the PATH',
  () => {
    // Arrange
    const folder = mkdtempSync(join(tmpdir(), 'onlyonce-'));
    const onPath = join(folder, 'dynoxide');
    const packagedProgram = join(folder, 'packaged');
    const named = join(folder, 'named');
    for (const path of [onPath, packagedProgram, named]) writeFileSync(path, '', { mode: 0o755 });

    // Act
    const found = [
      findDynoxide(packagedProgram, { DYNOXIDE_BIN: named, PATH: folder }),
      findDynoxide(packagedProgram, { PATH: folder }),
      findDynoxide(undefined, { PATH: `/nowhere:${folder}` }),
    ];

    // Assert
    expect(found).toEqual([named, packagedProgram, onPath]);
    rmSync(folder, { recursive: true });
  },
);

test('without any program the error names the other ways to a DynamoDB', () => {
  // Act
  const find = (): string => findDynoxide(undefined, { PATH: '' });

  // Assert
  expect(find).toThrow(EnvironmentError);
  expect(find).toThrow(/docker compose up[^]*docker-compose\.yml[^]*AWS_ENDPOINT_URL_DYNAMODB/);
});
