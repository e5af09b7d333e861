/** Compares the TextMate grammars, run in the engine of Visual Studio Code, with the language server's semantic tokens. */
import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import oniguruma from 'vscode-oniguruma';
import textmate from 'vscode-textmate';
import { dialectOf } from '../../../cli/language-server/documents.ts';
import { type SemanticToken, semanticTokens, type TokenType } from '../../../compiler/queries/semantic-tokens.ts';
import { parseSyntax } from '../../../compiler/queries/text-syntax.ts';
import { ROOT } from '../../harness.ts';

const grammars = suite('TextMate grammars');

const wasm = readFileSync(path.join(ROOT, 'node_modules/vscode-oniguruma/release/onig.wasm'));
await oniguruma.loadWASM(wasm);
const FILES: { readonly [scope: string]: string } = {
	'source.configfile': 'configfile.tmLanguage.json',
	'source.compatfile': 'caddyfile.tmLanguage.json',
};
const registry = new textmate.Registry({
	onigLib: Promise.resolve({
		createOnigScanner: (sources: string[]) => new oniguruma.OnigScanner(sources),
		createOnigString: (text: string) => new oniguruma.OnigString(text),
	}),
	loadGrammar: async scope => {
		const file = path.join(ROOT, 'cli/editors/vscode/syntaxes', FILES[scope]!);
		return textmate.parseRawGrammar(readFileSync(file, 'utf8'), file);
	},
});

/** The kind of semantic token that corresponds to each TextMate scope. */
const KINDS_BY_SCOPE: readonly (readonly [scope: string, kind: TokenType])[] = [
	['comment', 'comment'],
	['keyword.operator', 'operator'],
	['keyword', 'keyword'],
	['support.function', 'function'],
	['support.type.property-name', 'property'],
	['entity.name.namespace', 'namespace'],
	['entity.name.section', 'macro'],
	['entity.name.type', 'class'],
	['variable.parameter', 'parameter'],
	['variable', 'variable'],
	['string', 'string'],
	['constant.numeric', 'number'],
	['constant.language', 'enumMember'],
];

/**
 * Kinds that a grammar may give to a word instead of the server's kind: the server knows what the value is, but a grammar sees
 * only its spelling.
 */
const KINDS_BY_SPELLING: { readonly [kind in TokenType]?: readonly TokenType[] } = {
	enumMember: ['number', 'property'],
	regexp: ['string'],
};

/**
 * Matches a `{` that begins a line but belongs to the line before it, which ends with a backslash. Grammars read line by line, so
 * they color what follows such a brace as global options.
 */
const BRACE_AFTER_CONTINUED_LINE = /\\\n\s*\{/;

/** Returns the kind of token that the grammar assigns to each character of a text. */
async function kindsOf(text: string, dialect: string): Promise<(TokenType | undefined)[]> {
	const grammar = (await registry.loadGrammar(`source.${dialect}`))!;
	const kinds: (TokenType | undefined)[] = [];
	let stack = textmate.INITIAL;
	for (const line of text.split('\n')) {
		const { tokens, ruleStack, stoppedEarly } = grammar.tokenizeLine(line, stack, 10_000);
		assert.not(stoppedEarly, line);
		stack = ruleStack;
		const known = new Array<TokenType | undefined>(line.length + 1).fill(undefined);
		for (const { startIndex, endIndex, scopes } of tokens) {
			const kind = scopes
				.toReversed()
				.map(scope => KINDS_BY_SCOPE.find(([prefix]) => scope.startsWith(prefix))?.[1])
				.find(kind => kind !== undefined);
			known.fill(kind, startIndex, Math.min(endIndex, line.length));
		}
		for (const kind of known) kinds.push(kind);
	}
	return kinds;
}

const files = globSync('fixtures/**/{Configfile,Compatfile,*.configfile,*.caddyfile,*.conf}', { cwd: ROOT }).toSorted();

grammars('agree with semantic tokens in all fixtures', async () => {
	const differences: string[] = [];
	const seen = new Map<TokenType, { agreed: number; plain: number }>();
	for (const file of files) {
		const text = readFileSync(path.join(ROOT, file), 'utf8');
		if (BRACE_AFTER_CONTINUED_LINE.test(text)) continue;
		const dialect = dialectOf('', file);
		const kinds = await kindsOf(text, dialect);
		const compare = ({ start, end, type }: SemanticToken): void => {
			const given = kinds[start];
			const count = seen.get(type) ?? { agreed: 0, plain: 0 };
			seen.set(type, count);
			if (given === type) count.agreed++;
			else if (!given) count.plain++;
			else if (given && !KINDS_BY_SPELLING[type]?.includes(given)) {
				const line = text.slice(0, start).split('\n').length;
				differences.push(`${file}:${line}: \`${text.slice(start, end)}\` is ${type}, colored as ${given}`);
			}
		};
		for (const token of semanticTokens(parseSyntax(`/${file}`, text, dialect))) compare(token);
	}
	assert.equal(differences, []);
	for (const kind of new Set(KINDS_BY_SCOPE.map(([, kind]) => kind))) {
		const { agreed, plain } = seen.get(kind)!;
		assert.ok(agreed > 0, kind);
		// To a grammar, file names and enumeration values look like any other word.
		if (kind !== 'string' && kind !== 'enumMember') assert.ok(plain * 10 < agreed, `${kind}: ${plain} of ${agreed}`);
	}
});

grammars.run();
