/**
 * Measures the time to compile an edit in a large configuration. One changed site of 10,000 must take under 100 ms.
 * Every edit is compiled in a compiler session; the first row is a compilation without a session.
 *
 * Usage: node test/bench/edits.ts [--sites 10000]
 */
import { parseArgs } from 'node:util';
import { type CompileResult, compile, createCompiler } from '../../compiler/compiler.ts';
import { diskReader } from '../../runtime/compile/disk-reader.ts';

const { values } = parseArgs({ options: { sites: { type: 'string', default: '10000' } } });
const siteCount = Number(values.sites);
const reader = diskReader('/tmp');

/**
 * Returns the blocks of a configuration whose sites have six directives each. Every second site imports a snippet, and uses an
 * upstream and a constant of the file.
 */
function configurationBlocks(): string[] {
	const blocks = [
		'{\n\thttp_port 8080\n}\n',
		'let age 3600\n',
		'(common) {\n\theader -Server\n\theader Cache-Control "max-age={let.age}"\n}\n',
		'upstream api {\n\tto 127.0.0.1:9000 127.0.0.1:9001\n}\n',
	];
	for (let index = 0; index < siteCount; index++) {
		const own =
			index % 2 === 0
				? 'import common\n\treverse_proxy upstream://api'
				: `request_header X-In yes\n\trewrite /a /b\n\trespond "site ${index}"`;
		blocks.push(
			`http://site-${index}.example {\n\theader X-Site ${index}\n\t@old path /old /old/*\n\tredir @old /new permanent\n\t${own}\n}\n`,
		);
	}
	return blocks;
}

const blocks = configurationBlocks();
const session = createCompiler(reader);
let slowest = 0;

function measure(name: string, bound: number, run: (text: string) => CompileResult, repeat: number): void {
	const times: number[] = [];
	let result: CompileResult | undefined;
	for (let round = 0; round < repeat; round++) {
		const text = edits[name]!(round).join('');
		// Measures CPU time rather than wall time, so that other processes do not affect the result.
		const before = process.threadCpuUsage();
		result = run(text);
		const { user, system } = process.threadCpuUsage(before);
		times.push((user + system) / 1000);
	}
	times.sort((a, b) => a - b);
	const median = times[times.length >> 1]!;
	const verdict = bound === 0 ? '' : median <= bound ? `  (at most ${bound})  ok` : `  (at most ${bound})  OVER`;
	if (bound > 0) slowest = Math.max(slowest, median / bound);
	const said = result!.document
		? `${result!.document.sites!.length} sites`
		: `${result!.diagnostics.length} diagnostics`;
	console.log(`${name.padEnd(48)} ${median.toFixed(0).padStart(6)} ms, ${said}${verdict}`);
}

/** Returns all blocks of the configuration, with the block at `index` edited. */
function withEditedBlock(index: number, edit: (block: string) => string): string[] {
	return blocks.with(index, edit(blocks[index]!));
}

const middle = 4 + (siteCount >> 1);
const edits: { readonly [name: string]: (round: number) => string[] } = {
	'without a session': () => blocks,
	'first time': () => blocks,
	'nothing changed': () => blocks,
	'a site without imports': round => withEditedBlock(middle + 1, block => block.replace('"site', `"edit ${round} of`)),
	'a site with an import': round => withEditedBlock(middle, block => block.replace('X-Site', `X-Edit-${round}`)),
	'a line inserted at the top': round => ['# changed\n'.repeat(round + 1), ...blocks],
	'a site added': round => blocks.toSpliced(middle, 0, `http://more-${round}.example {\n\trespond ok\n}\n`),
	'a site removed': round => blocks.toSpliced(middle + round, 1),
	'a mistake in one site': round => withEditedBlock(middle + 1, block => block.replace('rewrite', `rewrit${round}`)),
	'a mistake in a site with an import': round =>
		withEditedBlock(middle, block => block.replace('import common', `import comon${round}`)),
	'a missing brace': () => withEditedBlock(middle, block => block.replace('}\n', '')),
	'the mistake fixed': () => blocks,
	'the snippet imported by half of the sites': round =>
		withEditedBlock(2, block => block.replace('-Server', `-X-${round}`)),
	'a global option': round => withEditedBlock(0, block => block.replace('8080', `${8081 + round}`)),
};

const input = (text: string) => ({ format: 'configfile' as const, text, name: 'Configfile', path: '/tmp/Configfile' });
for (const name of Object.keys(edits)) {
	if (name === 'without a session') measure(name, 0, text => compile(input(text), reader), 1);
	else {
		const unbounded = ['first time', 'a missing brace', 'the snippet imported by half of the sites', 'a global option'];
		const bound = unbounded.includes(name) ? 0 : 100;
		measure(name, bound, text => session.compile(input(text)), name === 'first time' ? 1 : 5);
	}
}
console.log(`resident: ${(process.memoryUsage.rss() / 1048576).toFixed(0)} MiB`);
process.exitCode = slowest > 1 ? 1 : 0;
