/** The completion scripts in their shells. The tests type lines into zsh and bash on a terminal, and query fish and elvish. */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { SVC, temporaryFolder } from '../harness.ts';

const folder = temporaryFolder();
mkdirSync(path.join(folder, 'site'));
writeFileSync(path.join(folder, 'Configfile'), '');
writeFileSync(path.join(folder, 'other file'), '');

function script(shell: string): string {
	const file = path.join(folder, `.completion-${shell}`);
	writeFileSync(file, execFileSync(SVC, ['completion', shell]));
	return file;
}

/** Types lines into a shell on a terminal (`⇥` is the tab key). Returns the arguments with which `svc` was called. */
function typeLines(shell: string, start: string, lines: readonly string[]): string[] {
	const input = [start, 'svc() { printf \'GOT<%s>\' "$@"; echo; }', ...lines, 'exit', '']
		.join('\n')
		.replaceAll('⇥', '\t');
	const { stdout } = spawnSync('script', ['-qec', shell, '/dev/null'], {
		cwd: folder,
		input,
		encoding: 'utf8',
		env: { PATH: process.env.PATH, TERM: 'dumb', HOME: folder },
		timeout: 20_000,
	});
	return stdout
		.split(/\r?\n/)
		.filter(line => /^GOT<(?!%s)/.test(line))
		.map(line => line.trim().replaceAll('GOT', ''));
}

const LINES = [
	'svc vers⇥',
	'svc -v ad⇥',
	'svc run --adapter=j⇥',
	'svc run -c Conf⇥',
	'svc completion po⇥',
	'svc help val⇥',
	'svc fmt oth⇥',
	'svc respond -H "a: b" --st⇥',
];
const WORDS = [
	'<version>',
	'<-v><adapt>',
	'<run><--adapter=json>',
	'<run><-c><Configfile>',
	'<completion><powershell>',
	'<help><validate>',
	'<fmt><other file>',
	'<respond><-H><a: b><--status>',
];

const completion = suite('completion in real shells');

completion('bash', () => {
	assert.equal(typeLines('bash --norc -i', `source ${script('bash')}`, LINES), WORDS);
});

completion('zsh', () => {
	const start = `autoload -Uz compinit; compinit -D -u; unsetopt auto_menu list_ambiguous; source ${script('zsh')}`;
	assert.equal(typeLines('zsh -f -i', start, LINES), WORDS);
});

completion('fish', () => {
	const file = script('fish');
	const ask = (line: string): string[] =>
		execFileSync('fish', ['--no-config', '-c', `source ${file}; complete -C '${line}'`], {
			cwd: folder,
			encoding: 'utf8',
		})
			.split('\n')
			.filter(one => one !== '')
			.map(one => one.split('\t')[0]!);
	assert.equal(ask('svc vers'), ['version']);
	assert.equal(ask('svc -v ad'), ['adapt']);
	assert.equal(ask('svc run --adapter=c'), ['--adapter=caddyfile', '--adapter=compatfile', '--adapter=configfile']);
	assert.equal(ask('svc run -c '), ['Configfile', 'other file', 'site/']);
	assert.equal(ask('svc file-server --root '), ['site/']);
	assert.equal(ask('svc service re'), ['reload', 'restart']);
	assert.equal(ask('svc service reload '), []);
	assert.equal(ask('svc stop --address '), []);
});

completion('elvish', () => {
	// The `edit:` namespace exists only on a terminal. This fake has the three members that the script uses.
	const editor =
		"var edit: = (ns [&completion:=(ns [&arg-completer=[&]]) &complete-filename~={|x| put FILES} &complex-candidate~={|x &display=''| put $x}])";
	const call = (words: string): string => `$edit:completion:arg-completer[svc] ${words} | to-lines\necho ---`;
	const lines = ["svc run --adapter ''", 'svc run --adapter=', "svc -v completion ''", 'svc fmt -', "svc fmt -c ''"];
	const program = [editor, execFileSync(SVC, ['completion', 'elvish'], { encoding: 'utf8' }), ...lines.map(call)];
	const file = path.join(folder, 'try.elv');
	writeFileSync(file, program.join('\n'));
	const answers = execFileSync('elvish', ['-norc', file], { encoding: 'utf8' }).split('\n---\n');
	assert.equal(answers.slice(0, -1), [
		'configfile\ncompatfile\ncaddyfile\njson',
		'--adapter=configfile\n--adapter=compatfile\n--adapter=caddyfile\n--adapter=json',
		'bash\nzsh\nfish\npowershell\nelvish',
		'-c\n--config\n-o\n-w\n--overwrite\n-d\n--diff\n-v\n--verbose\n-h\n--help',
		'FILES',
	]);
});

completion.run();
