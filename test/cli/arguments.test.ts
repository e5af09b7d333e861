/** Command line parsing: the values that a command receives, and the errors. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseArguments, scanCommandLine } from '../../cli/command/arguments.ts';
import type { Command } from '../../cli/command/command.ts';
import { COMMANDS } from '../../cli/commands/index.ts';

const command: Command = {
	name: 'try',
	summary: 'Try',
	args: [{ name: 'PATH', summary: 'A path' }],
	options: [
		{ name: 'config', short: 'c', valueName: 'CONFIG', summary: 'A file' },
		{ name: 'pretty', short: 'p', valueName: 'N', summary: 'A number' },
		{ name: 'header', short: 'H', valueName: 'H', repeatable: true, summary: 'A header' },
		{ name: 'watch', short: 'w', summary: 'A flag' },
		{ name: 'overwrite', short: 'o', aliases: ['x', 'replace'], summary: 'Another flag' },
		{ name: 'no-compress', summary: 'A negative flag' },
	],
	run: () => 0,
};

function plain(...words: string[]): string[] {
	return [...parseArguments(command, words).normalizedWords];
}

function refusal(...words: string[]): string {
	try {
		parseArguments(command, words);
	} catch (error) {
		return (error as Error).message;
	}
	throw new Error(`accepted: ${words.join(' ')}`);
}

const parsing = suite('options and arguments');

parsing('values are kept as written: a hyphen, a number, an empty string, a text that looks like an option', () => {
	assert.equal(plain('-c', '-', '-p', '007'), ['--config=-', '--pretty=007', '--']);
	assert.equal(plain('--config', '', '--pretty=', '-w'), ['--config=', '--pretty=', '--watch', '--']);
	assert.equal(plain('-H', '-X: 1', '--header=--watch'), ['--header=-X: 1', '--header=--watch', '--']);
});

parsing('one-letter options may be combined, and a value may follow its letter directly', () => {
	assert.equal(plain('-wcsite', 'a'), ['--watch', '--config=site', '--', 'a']);
	assert.equal(plain('-c=site'), ['--config=site', '--']);
});

parsing('aliases of an option are accepted', () => {
	assert.equal(plain('-x'), ['--overwrite', '--']);
	assert.equal(plain('--replace'), ['--overwrite', '--']);
});

parsing('after two hyphens every word is an argument', () => {
	assert.equal(plain('--', '--watch'), ['--', '--watch']);
	assert.equal(plain('-'), ['--', '-']);
});

parsing('every command accepts --verbose and --help', () => {
	assert.is(parseArguments(command, ['-v']).verbose, true);
	assert.is(parseArguments(command, ['a', '--verbose']).verbose, true);
	assert.is(parseArguments(command, ['-wh']).help, true);
	assert.is(
		parseArguments(command, ['a', 'b', '--help']).help,
		true,
		'help takes precedence over errors in the arguments',
	);
});

parsing('invalid command lines are reported', () => {
	assert.is(refusal('--nope'), '`--nope` is not an option of `svc try`');
	assert.is(refusal('-wz'), '`-z` is not an option of `svc try`');
	assert.is(refusal('--watch=1'), '`--watch` takes no value.');
	assert.is(refusal('--config'), '`--config` needs a value: --config <CONFIG>.');
	assert.is(refusal('-c', 'a', '-c', 'b'), '`--config` is given more than once.');
	assert.is(refusal('a', 'b'), '`b` is one word too many: svc try takes one argument.');
});

parsing('global flags may precede the command', () => {
	const scanned = scanCommandLine(['-v', 'run', '-c', 'x']);
	assert.equal(scanned, { command: 'run', wordsAfterCommand: ['-c', 'x'], verbose: true, help: false });
	for (const words of [['-V'], ['-V', 'run'], ['--version', '-v', 'run', '-c', 'x']]) {
		const { command, wordsAfterCommand } = scanCommandLine(words);
		assert.equal([command, wordsAfterCommand], ['version', []], words.join(' '));
	}
	assert.is(scanCommandLine(['-h', '-V', 'run']).command, 'run', 'help takes precedence');
	assert.throws(() => scanCommandLine(['--nope', 'run']), /not a global flag/);
});

parsing('storage export may be written as two words, also after help', () => {
	const words = ({ command, wordsAfterCommand }: ReturnType<typeof scanCommandLine>): string =>
		[command, ...wordsAfterCommand].join(' ');
	assert.is(words(scanCommandLine(['storage', 'export', '-o', '-'])), 'storage-export -o -');
	assert.is(words(scanCommandLine(['help', 'storage', 'import'])), 'help storage-import');
	assert.is(words(scanCommandLine(['help', 'storage'])), 'help storage');
	assert.is(words(scanCommandLine(['help', 'run', 'storage', 'export'])), 'help run storage export');
});

parsing.run();

const definitions = suite('command definitions');

definitions('every command is listed with its definition, and no options collide', async () => {
	for (const entry of COMMANDS) {
		const definition = await entry.load();
		assert.is(definition.name, entry.name);
		assert.is(definition.summary, entry.summary);
		const names = (definition.options ?? []).flatMap(({ name, short, aliases }) =>
			[name, short ?? [], aliases ?? []].flat(),
		);
		assert.equal(names.length, new Set(names).size, `${entry.name}: ${names}`);
		assert.not(
			names.some(name => ['v', 'h', 'verbose', 'help'].includes(name)),
			`${entry.name}: ${names}`,
		);
	}
});

definitions.run();
