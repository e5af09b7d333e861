/** Makes random changes to the text of configurations: changes that may affect responses, and refactorings that must not. */
import type { SeededChance } from './chance.ts';

/** A directive with its blocks. A `when` and its alternatives form one statement. */
interface Statement {
	/** The lines before the blocks, and the blocks themselves. A directive without a block has one line and no block. */
	readonly parts: { head: string; block: Statement[] | undefined }[];
}

/**
 * Applies one to eight random changes to a configuration and returns the result, which may not compile. Statements to
 * insert are taken from `other`.
 */
export function changedConfiguration(chance: SeededChance, text: string, other: string): string {
	const root = parse(text);
	const words = wordsOf(`${text}\n${other}`);
	for (let i = chance.of([1, 2, 3, 5, 8]); i > 0; i--) changeOnce(chance, root, parse(other), words);
	return render(root);
}

/**
 * Returns a configuration with the same meaning, in which consecutive statements of a block have moved into a snippet.
 * It may not compile.
 */
export function refactoredConfiguration(chance: SeededChance, text: string): string {
	const root = parse(text);
	const blocks = routesOf(root);
	const block = chance.of(blocks);
	const first = chance.below(block.length);
	const taken = block.slice(first, first + 1 + chance.below(3)).filter(isMovable);
	if (taken.length === 0) return text;
	block.splice(block.indexOf(taken[0]!), taken.length, line('import extracted'));
	const global = root[0]?.parts[0]?.head === '{' ? 1 : 0;
	root.splice(global, 0, { parts: [{ head: '(extracted) {', block: taken }] });
	return render(root);
}

function changeOnce(
	chance: SeededChance,
	root: Statement[],
	other: Statement[],
	words: ReadonlyMap<string, readonly string[]>,
): void {
	const blocks = routesOf(root);
	const block = chance.of(blocks);
	const at = block.indexOf(chance.of(block.filter(isMovable)));
	switch (chance.below(6)) {
		case 0:
			block.splice(at, 1);
			return;
		case 1: {
			const [moved] = block.splice(at, 1);
			chance.of(blocks).splice(0, 0, moved!);
			return;
		}
		case 2: {
			const [moved] = block.splice(at, 1);
			block.splice(chance.below(block.length + 1), 0, moved!);
			return;
		}
		case 3: {
			const others = routesOf(other);
			block.splice(at, 0, chance.of(chance.of(others).filter(isMovable)));
			return;
		}
		default:
			changeWord(chance, root, words);
	}
}

/** Replaces a word with another of the same kind. */
function changeWord(chance: SeededChance, root: Statement[], words: ReadonlyMap<string, readonly string[]>): void {
	const parts = routesOf(root)
		.flatMap(block => block.flatMap(({ parts: own }) => own))
		.filter(({ head }) => tokens(head).some(token => kindOf(token) !== undefined));
	if (parts.length === 0) return;
	const part = chance.of(parts);
	const all = tokens(part.head);
	const at = all.indexOf(chance.of(all.filter(token => kindOf(token) !== undefined)));
	all[at] = chance.of(words.get(kindOf(all[at]!)!)!);
	part.head = all.join(' ');
}

/** Returns the kind of value that a word looks like, or undefined if it looks like a name. */
function kindOf(word: string): string | undefined {
	if (/^`?[/*~]\S*/.test(word) && word.length > 1) return 'path';
	if (/^[1-5](\d\d|xx)$/.test(word)) return 'status';
	if (/^(GET|HEAD|POST|PUT|DELETE|OPTIONS|PATCH)$/.test(word)) return 'method';
	if (/^(\*\.)?[a-z.]*\.(example|test)$/.test(word)) return 'host';
	if (/^X-\w+$/.test(word)) return 'field';
	if (/^127\.0\.0\.1:\d+$/.test(word)) return 'upstream';
	return undefined;
}

function wordsOf(text: string): ReadonlyMap<string, readonly string[]> {
	const words = new Map<string, string[]>();
	for (const one of text.split('\n').flatMap(tokens)) {
		const kind = kindOf(one);
		if (kind !== undefined) words.set(kind, [...(words.get(kind) ?? []), one]);
	}
	return words;
}

/** Splits a line at spaces, except in texts between backquotes. */
function tokens(head: string): string[] {
	return head.match(/`[^`]*`|\S+/g) ?? [];
}

/**
 * Reports whether a statement may be moved elsewhere. A matcher definition must stay in place, and so must the statements inside
 * it.
 */
function isMovable({ parts }: Statement): boolean {
	return !/^[@}]|^handle_errors\b/.test(parts[0]!.head);
}

function blocksOf(root: Statement[]): Statement[][] {
	// A directive moved into a list of accounts would be read as an account: it would compile but fail to load.
	const inner = root.flatMap(({ parts }) =>
		parts.flatMap(({ head, block }) => (block && !head.startsWith('basic_auth') ? blocksOf(block) : [])),
	);
	return [root, ...inner];
}

/** Returns the blocks of sites and named routes that contain directives, and the blocks nested in them. */
function routesOf(root: Statement[]): Statement[][] {
	const routes = root.filter(({ parts }) => !/^(\{$|upstream )/.test(parts[0]!.head));
	return blocksOf(routes).filter(block => block !== routes && block.some(isMovable));
}

function line(head: string): Statement {
	return { parts: [{ head, block: undefined }] };
}

function parse(text: string): Statement[] {
	const root: Statement[] = [];
	const open: Statement[][] = [root];
	for (const head of text.split('\n').map(one => one.trim())) {
		if (head === '') continue;
		const block = open.at(-1)!;
		if (head === '}') open.pop();
		else if (head.startsWith('} else')) {
			open.pop();
			const part = { head: head.slice(2), block: [] };
			open.at(-1)!.at(-1)!.parts.push(part);
			open.push(part.block);
		} else if (head.endsWith('{')) {
			const part = { head, block: [] };
			block.push({ parts: [part] });
			open.push(part.block);
		} else block.push(line(head));
	}
	return root;
}

function render(block: readonly Statement[], depth = 0): string {
	const tab = '\t'.repeat(depth);
	return block
		.map(({ parts }) => {
			if (parts[0]!.block === undefined) return `${tab}${parts[0]!.head}\n`;
			return `${tab}${parts.map(({ head, block: inner }) => `${head}\n${render(inner!, depth + 1)}${tab}}`).join(' ')}\n`;
		})
		.join('');
}
