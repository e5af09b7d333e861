/** Random configurations with imported files and random edits, for comparing sessions with compilation from scratch. */
import type { Dialect } from '../../../compiler/dialects/dialect.ts';
import type { Random } from '../syntax/random-text.ts';
import { CONFIG_FOLDER, type ConfigFiles } from './files.ts';

/**
 * A configuration as a list of top-level blocks, each ending with a line break. Imported files have the same form.
 */
export interface ConfigurationDraft {
	readonly dialect: Dialect;
	blocks: string[];
	path: string | undefined;
	readonly files: { [path: string]: string };
	readonly env: { [name: string]: string };
}

const NAMES = ['a', 'b', 'c', 'web', 'api'];

/** Returns a random line of a site, valid or invalid, with its block if it has one. */
function randomLine(random: Random, dialect: Dialect, depth: number): string {
	const name = random.of(NAMES);
	const nested = (head: string): string => {
		if (depth > 2) return `${head.replace(/^when.*/, 'header X y')}`;
		const inner = Array.from({ length: random.below(3) }, () => `\t${randomLine(random, dialect, depth + 1)}\n`).join(
			'',
		);
		return `${head} {\n${inner}}`;
	};
	const choice = random.below(40);
	if (choice < 5) return `respond "${name} ${random.below(100)}"`;
	if (choice < 8) return `header X-${name} ${random.below(10)}`;
	if (choice < 10) return `@${name} path /${name}/*\nredir @${name} /new`;
	if (choice < 12) return `root /srv/${name}\nfile_server`;
	if (choice < 13) return `root ${name}`;
	if (choice < 15) return `reverse_proxy 127.0.0.1:${9000 + random.below(9)}`;
	if (choice < 17 && dialect === 'configfile') return `reverse_proxy upstream://${name}`;
	if (choice < 19) return `import ${name}`;
	if (choice < 20) return `import ${name} one {let.${name}}`;
	if (choice < 21) return `import part-${name}.conf`;
	if (choice < 22 && dialect === 'configfile') return `use ${name} p=${random.below(3)}`;
	if (choice < 23 && dialect === 'configfile') return `let ${name} ${random.below(9)}`;
	if (choice < 24) return `respond {let.${name}}`;
	if (choice < 25) return 'respond {$TEXT:none}';
	if (choice < 26) return `respnd ${name}`;
	if (choice < 27) return `header X {${name}.unknown}`;
	if (choice < 28) return `@${name} path /x`;
	if (choice < 30) return nested(`handle /${name}/*`);
	if (choice < 31 && dialect === 'configfile') return nested('when path /x/*');
	if (choice < 32 && dialect === 'configfile') return `${nested('when path /y')} else {\n\trespond 404\n}`;
	if (choice < 33) return nested('route');
	if (choice < 34) return `log {\n\toutput discard\n}`;
	if (choice < 35) return `respond <<E\n\t}\n{ ${name}\n\tE`;
	if (choice < 36 && dialect === 'configfile') return `upstream ${name} {\n\tto 127.0.0.1:${random.below(5)}000\n}`;
	if (choice < 37) return `map {path} {${name}} {\n\t/a 1\n\tdefault 2\n}\nheader X {${name}}`;
	if (choice < 38) return `invoke ${name}`;
	if (choice < 39) return `rewrite * /${name}{query`;
	return `handle_errors {\n\trespond "${name}"\n}`;
}

function lines(random: Random, dialect: Dialect, most: number): string {
	return Array.from({ length: random.below(most) }, () => `${randomLine(random, dialect, 0)}\n`).join('');
}

/** Returns a random top-level block. */
export function randomBlock(random: Random, dialect: Dialect): string {
	const name = random.of(NAMES);
	const port = random.of(['', ':8080', ':8081', ':80']);
	const choice = random.below(40);
	if (choice < 20) return `http://${name}${random.below(8)}.example${port} {\n${lines(random, dialect, 5)}}\n`;
	if (choice < 22)
		return `# about ${name}\n\nhttp://${name}.example,\nhttp://www.${name}.example {\n${lines(random, dialect, 4)}}\n`;
	if (choice < 23) return `http://{$HOST}${port} {\n${lines(random, dialect, 3)}}\n`;
	if (choice < 24) return `{env.HOST}${port} {\n${lines(random, dialect, 3)}}\n`;
	if (choice < 26) return `(${name}) {\n${lines(random, dialect, 3)}}\n`;
	if (choice < 27 && dialect === 'configfile') return `(${name}) p q="1 {\n" {\n\trespond {param.p}\n}\n`;
	if (choice < 29 && dialect === 'configfile') return `let ${name} ${random.below(5)}\n`;
	if (choice < 31 && dialect === 'configfile')
		return `upstream ${name} {\n\tto 127.0.0.1:${7000 + random.below(3)}\n}\n`;
	if (choice < 32 && dialect === 'configfile')
		return `test "${name}" {\n\tGET http://${name}.example/\n\texpect status 200\n}\n`;
	if (choice < 33) return `&(${name}) {\n${lines(random, dialect, 3)}}\n`;
	if (choice < 34) return `import sites-${name}.conf\n`;
	if (choice < 35) return 'import *.conf\n';
	if (choice < 36)
		return `{\n\t${random.of(['debug', 'grace_period 10s', 'http_port 8080', 'default_bind 127.0.0.1', 'nonsense'])}\n}\n`;
	if (choice < 37) return `respond ${name}\n`;
	if (choice < 38) return `${name}.example {\n\trespond "unbalanced\n}\n`;
	if (choice < 39) return random.of(['}\n', 'x {\n', '} # \\\n', '\n\n', `import ${name}\n`, '\ufeff']);
	return `*.${name}.example:8080 {\n${lines(random, dialect, 3)}} # end\n`;
}

/** Returns a random configuration with its imported files. */
export function randomDraft(random: Random, dialect: Dialect): ConfigurationDraft {
	const files: { [path: string]: string } = {};
	for (const name of NAMES) {
		if (random.below(2) === 0) files[`part-${name}.conf`] = lines(random, dialect, 3);
		if (random.below(2) === 0)
			files[`sites-${name}.conf`] = `${randomBlock(random, dialect)}${randomBlock(random, dialect)}`;
	}
	const blocks = Array.from({ length: 1 + random.below(8) }, () => randomBlock(random, dialect));
	if (random.below(2) === 0) blocks.unshift('{\n\thttp_port 80\n}\n');
	return { dialect, blocks, path: `${CONFIG_FOLDER}/main`, files, env: { HOST: 'env.example', TEXT: 'text' } };
}

/** Makes one random change to a draft: to its blocks, files, path or environment. */
export function applyRandomEdit(random: Random, draft: ConfigurationDraft): void {
	const { blocks, files, env, dialect } = draft;
	const at = random.below(blocks.length + 1);
	const paths = Object.keys(files);
	switch (random.below(13)) {
		case 12:
			draft.path = random.of([
				`${CONFIG_FOLDER}/main`,
				`${CONFIG_FOLDER}/part-a.conf`,
				'/config/other/main',
				undefined,
			]);
			break;
		case 0:
			blocks.splice(at, 0, randomBlock(random, dialect));
			break;
		case 1:
			blocks.splice(at, 1);
			break;
		case 2:
			blocks.splice(at, 0, random.of(['\n', '# a comment\n', 'let z 1\n']));
			break;
		case 3:
			if (blocks[at] !== undefined) blocks.splice(random.below(blocks.length), 0, blocks[at]);
			break;
		case 4:
			if (paths.length > 0) {
				const path = random.of(paths);
				files[path] = path.startsWith('part') ? lines(random, dialect, 3) : randomBlock(random, dialect);
			}
			break;
		case 5:
			if (paths.length > 0 && random.below(3) === 0) delete files[random.of(paths)];
			else files[`sites-${random.of(NAMES)}.conf`] = randomBlock(random, dialect);
			break;
		case 6:
			env[random.of(['HOST', 'TEXT'])] = random.of(['env.example', 'other.example', 'x', '"quoted\n}', 'a {\n}\nb']);
			break;
		case 7:
		case 8: {
			const text = blocks[at];
			if (text === undefined) break;
			const cut = random.below(text.length);
			const inserted = random.of(['}', '{', '\n', ' ', '"', 'x', '#', '\t', '{let.a}', '\\', '']);
			blocks[at] = text.slice(0, cut) + inserted + text.slice(cut + random.below(3));
			break;
		}
		default:
			if (blocks[at] !== undefined) blocks[at] = randomBlock(random, dialect);
	}
}

/** Returns the files of a draft, including the main text. */
export function draftFiles({ blocks, path, files, env }: ConfigurationDraft): ConfigFiles {
	return { main: blocks.join(''), path, files, env };
}
