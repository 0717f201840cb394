/**
 * Checks who imports whom in src (rules: .dependency-cruiser.mjs) and how its files and folders are named.
 * dependency-cruiser passes when it could read nothing ("0 modules cruised"), so the files it saw are compared with the
 * files there are, and at least one import must have been found.
 */
import swcVisitor from '@swc/core/Visitor.js';
import { cruise } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import { sourceFiles } from './source-files.mjs';

/** Names that say nothing about what is inside, and so gather everything. */
const CATCH_ALL_NAMES = new Set(['utils', 'util', 'helpers', 'helper', 'common', 'core', 'types', 'misc']);

async function main() {
  const files = sourceFiles();
  const report = await reportOfCruise();
  const faults = [
    ...report.summary.violations.map(describeViolation),
    ...faultsOfNames(files),
    ...faultsOfCoverage(files, report.modules),
  ];
  for (const fault of faults) process.stderr.write(`${fault}\n`);
  if (faults.length > 0) {
    process.stderr.write(`\nboundaries: ${String(faults.length)} faults\n`);
    process.exitCode = 1;
    return;
  }
  process.stdout.write(`boundaries: ${String(files.length)} files of src, no faults\n`);
}

async function reportOfCruise() {
  teachUsingDeclarations(swcVisitor.Visitor.prototype);
  const options = await extractDepcruiseOptions('./.dependency-cruiser.mjs');
  const { output } = await cruise(['src'], { ...options, outputType: 'json' });
  return JSON.parse(output);
}

/** The visitor that swc ships, which dependency-cruiser extends, gives up at `using` and `await using`. */
function teachUsingDeclarations(visitor) {
  const visitStatement = visitor.visitStatement;
  visitor.visitStatement = function (statement) {
    if (statement.type !== 'UsingDeclaration') return visitStatement.call(this, statement);
    statement.decls = this.visitVariableDeclarators(statement.decls);
    return statement;
  };
}

function describeViolation(violation) {
  const way = violation.cycle?.map((step) => step.name).join(' -> ') ?? violation.to;
  return `${violation.rule.name}: ${violation.from} -> ${way}`;
}

function faultsOfNames(files) {
  return files.flatMap((file) =>
    file
      .split('/')
      .filter((part) => CATCH_ALL_NAMES.has(part.replace(/(\.d)?\.ts$/, '')))
      .map((part) => `no-catch-all-names: ${file}: "${part}" does not say what is inside`),
  );
}

function faultsOfCoverage(files, modules) {
  const seen = new Set(modules.map((module) => module.source));
  const unseen = files.filter((file) => !seen.has(file)).map((file) => `every-file-is-read: ${file} was not read`);
  if (files.length === 0) return ['every-file-is-read: there is no .ts file in src'];
  if (modules.every((module) => module.dependencies.length === 0))
    unseen.push('every-file-is-read: no import was found');
  return unseen;
}

await main();
