/** The manuals of words, which hovers, completions and signatures show. They are taken from the modules. */
import { placeholders } from '../codegen/placeholders/index.ts';
import { compatiblePlaceholderName, fullPlaceholderName } from '../codegen/placeholders/shorthands.ts';
import type { Dialect } from '../dialects/dialect.ts';
import { lintRules } from '../lint/index.ts';
import { registryOf } from '../lower/registry.ts';

/** Documentation of a word, in Markdown. */
export interface Manual {
	/** The usage line of a directive, matcher or option. */
	readonly usage: string | undefined;
	/** A description in one sentence. */
	readonly summary: string;
	/** Further paragraphs of documentation; may be empty. */
	readonly details: string;
}

/** Manuals of the words that belong to the languages rather than to a module. */
const KEYWORD_MANUALS: { readonly [word: string]: Manual } = {
	import: {
		usage: 'import <file | pattern | snippet> [<argument>…]',
		summary: 'Inserts the lines of files, or of a snippet.',
		details:
			'Relative paths are relative to the importing file. Arguments are `{args[0]}`, `{args[1]}`, … in the inserted lines.',
	},
	use: {
		usage: 'use <snippet> [<parameter>=<value>…] [{ … }]',
		summary: 'Inserts the lines of a snippet, with values for its parameters.',
		details: 'In the snippet, `{param.NAME}` is the value of a parameter, and `{block}` is the block that is passed.',
	},
	let: {
		usage: 'let <name> <value>…',
		summary: 'Defines a constant of the file or the site.',
		details: '`{let.NAME}` inserts it.',
	},
	upstream: {
		usage: 'upstream <name> { to <address>… }',
		summary: 'Defines a pool of upstreams that any site can use.',
		details: '`reverse_proxy upstream://NAME` forwards to it.',
	},
	test: {
		usage: 'test "<what it proves>" { GET <url>; expect … }',
		summary: 'A request and what is expected of its answer.',
		details: '`svc validate` runs it, without a network.',
	},
	else: {
		usage: '} else [when <expression>] { … }',
		summary: 'Runs if the `when` before it does not hold.',
		details: '',
	},
};

/** Returns the manual of a word of the language, such as `import`; undefined if there is none. */
export function keywordManual(word: string, dialect: Dialect): Manual | undefined {
	if (dialect === 'compatfile' && word !== 'import') return undefined;
	return Object.hasOwn(KEYWORD_MANUALS, word) ? KEYWORD_MANUALS[word] : undefined;
}

export function directiveManual(name: string, dialect: Dialect): Manual | undefined {
	return moduleManual(registryOf(dialect).directives.get(name));
}

export function matcherManual(name: string, dialect: Dialect): Manual | undefined {
	return moduleManual(registryOf(dialect).matchers.get(name));
}

export function optionManual(name: string, dialect: Dialect): Manual | undefined {
	return moduleManual(registryOf(dialect).options.get(name));
}

function moduleManual(
	module: { readonly usage: string; readonly summary: string; readonly documentation: string } | undefined,
): Manual | undefined {
	return module && { usage: module.usage, summary: module.summary, details: module.documentation };
}

/**
 * Returns the manual of a word in a block: its usage, and the part of the enclosing line's manual that is about the word. Returns
 * undefined if both are missing.
 */
export function subdirectiveManual(
	word: string,
	outerManual: Manual | undefined,
	usage: string | undefined,
): Manual | undefined {
	const clause = outerManual && clauseAbout(word, `${outerManual.summary}\n${outerManual.details}`);
	if (clause === undefined && usage === undefined) return undefined;
	return { usage, summary: clause ?? '', details: '' };
}

/** Returns the table row, clause or sentence of a manual that is about a word; undefined if the manual does not mention it. */
function clauseAbout(word: string, text: string): string | undefined {
	const prose = text.replace(/```[\s\S]*?```|^\|.*$/gm, '').replace(/\n(?!\n)/g, ' ');
	const quotedWord = `\`${word}`;
	for (const row of text.split('\n')) {
		const cells = row.startsWith('| `') ? row.slice(2).replace(/ \|$/, '').split(' | ') : [];
		if (cells[0]?.startsWith(quotedWord) && cells[1]) return `${cells[0]}: ${cells[1]}`;
	}
	const sentences = prose.split(/(?<=[.:])\s+(?=[A-Z`])|\n+/);
	let containingSentence: string | undefined;
	for (const sentence of sentences) {
		if (!sentence.includes(quotedWord)) continue;
		const clause = sentence.split(/;\s+/).find(part => part.startsWith(quotedWord));
		if (clause !== undefined) return clause.replace(/[.;]?$/, '.');
		containingSentence ??= sentence;
	}
	return containingSentence?.trim();
}

/** Returns the manual of a placeholder; undefined if it is unknown. `name` has no braces. */
export function placeholderManual(name: string, dialect: Dialect): Manual | undefined {
	const fullName = fullPlaceholderName(name);
	const queriedName = dialect === 'compatfile' ? compatiblePlaceholderName(fullName) : fullName;
	const placeholder =
		placeholders.find(one => one.name === queriedName) ??
		placeholders
			.filter(one => one.name.endsWith('*') && queriedName.startsWith(one.name.slice(0, -1)))
			.sort((a, b) => b.name.length - a.name.length)[0];
	if (!placeholder) return undefined;
	return {
		usage: `{${name}}`,
		summary: placeholder.summary,
		details: fullName === name ? '' : `Short for \`{${fullName}}\`.`,
	};
}

/** Returns the documentation of a lint rule; undefined if there is no such rule. */
export function ruleManual(name: string): Manual | undefined {
	const rule = lintRules.find(one => one.name === name);
	return rule && { usage: undefined, summary: rule.summary, details: rule.documentation };
}

/** Returns a manual as a single Markdown text. */
export function manualText({ usage, summary, details }: Manual): string {
	const code = usage === undefined ? [] : ['```', usage, '```'];
	return [...code, summary, ...(details === '' ? [] : ['', details])].join('\n').trim();
}
