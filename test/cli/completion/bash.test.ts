/** The bash completion script, run in bash: the words offered after each command. */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { COMMANDS } from '../../../cli/commands/index.ts';
import { bashCompletion } from '../../../cli/completion/bash.ts';
import { completionsOf } from '../../../cli/completion/offered-words.ts';
import { temporaryFolder } from '../../harness.ts';

const folder = temporaryFolder();
const commands = await Promise.all(COMMANDS.map(entry => entry.load()));
const script = path.join(folder, 'svc.bash');
writeFileSync(script, bashCompletion(completionsOf(commands)));

/** Returns the words offered for the last word of each line. A leading `!` means that bash adds no file names. */
function offeredWords(lines: readonly (readonly string[])[]): string[] {
	const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
	const calls = lines.map(
		words =>
			`files=files; COMP_WORDS=(${words.map(quoted).join(' ')}); COMP_CWORD=${words.length - 1}; _svc; echo "$files \${COMPREPLY[*]}"`,
	);
	// compopt works only during a completion, so a fake one prints its arguments.
	const program = `set -u; compopt() { files=$*; }; source ${quoted(script)}\n${calls.join('\n')}\n`;
	const output = execFileSync('bash', ['--norc', '-c', program], { encoding: 'utf8', env: { PATH: process.env.PATH } });
	return output
		.trimEnd()
		.split('\n')
		.map(line => line.replace('+o default +o bashdefault', '!').replace('-o dirnames !', 'folders').trimEnd());
}

function offer(...words: string[]): string {
	return offeredWords([['svc', ...words]])[0]!;
}

const completion = suite('completion for bash');

completion('commands are completed first, even after global flags', () => {
	const names = COMMANDS.map(({ name }) => name).join(' ');
	assert.is(offer(''), `! ${names}`);
	assert.is(offer('-v', ''), `! ${names}`);
	assert.is(offer('re'), '! reload restart respond reverse-proxy');
	assert.is(offer('--'), '! --verbose --help --version');
});

completion('every option of every command is offered, except internal ones', () => {
	const lines = commands.map(({ name }) => ['svc', name, '-']);
	for (const [index, offered] of offeredWords(lines).entries()) {
		const words = offered.split(' ').slice(1);
		const { name, options = [] } = commands[index]!;
		assert.equal(words.slice(-4).sort(), ['--help', '--verbose', '-h', '-v'], name);
		for (const option of options) {
			assert.is(words.includes(`--${option.name}`), !option.internal, `${name} --${option.name}`);
			if (option.short) assert.ok(words.includes(`-${option.short}`), `${name} -${option.short}`);
		}
	}
});

completion('the possible values of an option are offered', () => {
	assert.is(offer('run', '--adapter', ''), '! configfile compatfile caddyfile json');
	assert.is(offer('run', '--adapter', '=', 'c'), '! configfile compatfile caddyfile');
	assert.is(offer('run', '--adapter', '='), '! configfile compatfile caddyfile json');
	assert.is(offer('stop', '--address', ''), '!');
	assert.is(offer('completion', ''), '! bash zsh fish powershell elvish');
	assert.is(offer('help', 'va'), '! validate');
});

completion('bash completes file and folder names', () => {
	assert.is(offer('run', '--config', 'C'), 'files');
	assert.is(offer('run', '-c', ''), 'files');
	assert.is(offer('validate', ''), 'files');
	assert.is(offer('file-server', '--root', ''), 'folders');
});

completion('an option value does not count as an argument, and options are offered after the last argument', () => {
	assert.is(offer('validate', '--adapter', 'json', ''), 'files');
	assert.match(offer('run', 'Configfile', ''), /^! -c --config /);
	assert.is(offer('validate', 'Configfile', ''), 'files');
	for (const command of ['reload', 'start', 'stop', 'adapt']) assert.is(offer(command, ''), 'files', command);
	assert.is(offer('explain', 'GET', 'http://a.test/', ''), 'files');
	assert.match(offer('version', ''), /^! -v --verbose /);
	assert.is(offer('validate', '--', '-'), 'files');
});

completion.run();
