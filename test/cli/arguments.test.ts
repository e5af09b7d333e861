/** Command lines: what a command gets of them, and what is refused. */
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { parseArguments, scan } from '../../cli/arguments.ts';
import type { Command } from '../../cli/command.ts';
import { COMMANDS } from '../../cli/commands/index.ts';

const command: Command = {
	name: 'try',
	summary: 'Try',
	args: [{ name: 'PATH', summary: 'A path' }],
	options: [
		{ name: 'config', short: 'c', value: 'CONFIG', summary: 'A file' },
		{ name: 'pretty', short: 'p', value: 'N', summary: 'A number' },
		{ name: 'header', short: 'H', value: 'H', repeatable: true, summary: 'A header' },
		{ name: 'watch', short: 'w', summary: 'A flag' },
		{ name: 'overwrite', short: 'o', also: ['x', 'replace'], summary: 'Another flag' },
		{ name: 'no-compress', summary: 'A negative flag' },
	],
	run: () => 0,
};

function plain(...words: string[]): string[] {
	return [...parseArguments(command, words).plain];
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

parsing('values keep their text: a hyphen, a number, an empty one, one that looks like an option', () => {
	assert.equal(plain('-c', '-', '-p', '007'), ['--config=-', '--pretty=007', '--']);
	assert.equal(plain('--config', '', '--pretty=', '-w'), ['--config=', '--pretty=', '--watch', '--']);
	assert.equal(plain('-H', '-X: 1', '--header=--watch'), ['--header=-X: 1', '--header=--watch', '--']);
});

parsing('letters may be combined, and a value may follow its letter directly', () => {
	assert.equal(plain('-wcsite', 'a'), ['--watch', '--config=site', '--', 'a']);
	assert.equal(plain('-c=site'), ['--config=site', '--']);
});

parsing('aliases of an option are accepted', () => {
	assert.equal(plain('-x'), ['--overwrite', '--']);
	assert.equal(plain('--replace'), ['--overwrite', '--']);
});

parsing('after two hyphens everything is an argument', () => {
	assert.equal(plain('--', '--watch'), ['--', '--watch']);
	assert.equal(plain('-'), ['--', '-']);
});

parsing('verbose and help are known to every command', () => {
	assert.is(parseArguments(command, ['-v']).verbose, true);
	assert.is(parseArguments(command, ['a', '--verbose']).verbose, true);
	assert.is(parseArguments(command, ['-wh']).help, true);
	assert.is(parseArguments(command, ['a', 'b', '--help']).help, true, 'help comes before complaints about arguments');
});

parsing('mistakes are reported', () => {
	assert.is(refusal('--nope'), '`--nope` is not an option of `svc try`');
	assert.is(refusal('-wz'), '`-z` is not an option of `svc try`');
	assert.is(refusal('--watch=1'), '`--watch` takes no value.');
	assert.is(refusal('--config'), '`--config` needs a value: --config <CONFIG>.');
	assert.is(refusal('-c', 'a', '-c', 'b'), '`--config` is given more than once.');
	assert.is(refusal('a', 'b'), '`b` is one word too many: svc try takes one argument.');
});

parsing('global flags go before the command', () => {
	const scanned = scan(['-v', 'run', '-c', 'x']);
	assert.equal(scanned, { command: 'run', rest: ['-c', 'x'], verbose: true, help: false });
	for (const words of [['-V'], ['-V', 'run'], ['--version', '-v', 'run', '-c', 'x']]) {
		const { command, rest } = scan(words);
		assert.equal([command, rest], ['version', []], words.join(' '));
	}
	assert.is(scan(['-h', '-V', 'run']).command, 'run', 'help comes first');
	assert.throws(() => scan(['--nope', 'run']), /not a global flag/);
});

parsing('storage export may be two words, for help too', () => {
	const words = ({ command, rest }: ReturnType<typeof scan>): string => [command, ...rest].join(' ');
	assert.is(words(scan(['storage', 'export', '-o', '-'])), 'storage-export -o -');
	assert.is(words(scan(['help', 'storage', 'import'])), 'help storage-import');
	assert.is(words(scan(['help', 'storage'])), 'help storage');
	assert.is(words(scan(['help', 'run', 'storage', 'export'])), 'help run storage export');
});

parsing.run();

const definitions = suite('definitions of commands');

definitions('the list agrees with the definitions, whose options do not collide', async () => {
	for (const entry of COMMANDS) {
		const definition = await entry.load();
		assert.is(definition.name, entry.name);
		assert.is(definition.summary, entry.summary);
		const names = (definition.options ?? []).flatMap(({ name, short, also }) => [name, short ?? [], also ?? []].flat());
		assert.equal(names.length, new Set(names).size, `${entry.name}: ${names}`);
		assert.not(
			names.some(name => ['v', 'h', 'verbose', 'help'].includes(name)),
			`${entry.name}: ${names}`,
		);
	}
});

definitions.run();
