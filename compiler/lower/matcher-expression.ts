/**
 * Lowers matcher expressions: `path /a* and not ( method GET or @b )` in a Configfile, and one matcher or a block of matchers in
 * both dialects.
 */

import { didYouMean, type Suggestion } from '../diagnostics/suggest.ts';
import type { Matcher } from '../document/document.ts';
import type { MatcherModule } from '../modules/contract/matcher.ts';
import { expression } from '../modules/matchers/expression/expression.ts';
import type { Block, Line, Word } from '../syntax/ast.ts';
import { formatNameList, spanOfWords } from './context/sentences.ts';
import type { Lowering } from './lowering.ts';
import { MAX_MATCHER_DEPTH } from './matcher-limits.ts';

const OPERATORS = new Set(['and', 'or', 'not', '(', ')']);

/** Used instead of an expression whose mistake has been reported, so that nothing else is reported about it. */
const BROKEN: Matcher = { type: 'any', of: [] };

/**
 * Lowers the words and the block after `@name`, `when` or `not`. Returns undefined after reporting a mistake, but still checks
 * everything that can be checked.
 */
export function lowerMatcherExpression(
	lowering: Lowering,
	words: readonly Word[],
	block: Block | undefined,
	name: string | undefined,
): Matcher | undefined {
	const reader = new ExpressionReader(lowering, words, block, name);
	const matcher = reader.read();
	return reader.broken ? undefined : matcher;
}

/** The meaning of a matcher without conditions in a Compatfile. */
const EVERYTHING: Matcher = { type: 'all', of: [] };

class ExpressionReader {
	broken = false;
	readonly #lowering: Lowering;
	readonly #words: readonly Word[];
	readonly #name: string | undefined;
	#block: Block | undefined;
	#at = 0;
	readonly #infix: boolean;

	constructor(lowering: Lowering, words: readonly Word[], block: Block | undefined, name: string | undefined) {
		this.#lowering = lowering;
		this.#words = words;
		this.#block = block;
		this.#name = name;
		this.#infix = lowering.dialect === 'configfile';
	}

	read(): Matcher {
		if (this.#words.length === 0) {
			if (this.#block) return this.#allOf(this.#block);
			if (!this.#infix) return EVERYTHING;
			this.broken = true;
			return BROKEN;
		}
		const matcher = this.#or();
		const rest = this.#words[this.#at];
		if (rest && !this.broken) {
			const hint = rest.text === ')' ? 'Remove it, or add the `(` that it closes.' : undefined;
			this.#fail('matcher/unexpected-word', rest, `\`${rest.text}\` is unexpected here.`, { hint });
		}
		if (this.#block && !this.broken) {
			this.broken = true;
			const last = this.#words[this.#words.length - 1]!;
			const message = `\`${last.text}\` takes no block.`;
			this.#lowering.problem('error', 'matcher/unexpected-block', this.#block.open, message);
		}
		return matcher;
	}

	#operator(): string | undefined {
		const word = this.#words[this.#at];
		if (word?.quote !== 'none') return undefined;
		if (!this.#infix) return word.text === 'not' ? 'not' : undefined;
		return OPERATORS.has(word.text) ? word.text : undefined;
	}

	#or(): Matcher {
		const parts = [this.#and()];
		while (this.#operator() === 'or') {
			this.#at++;
			parts.push(this.#and());
		}
		return parts.length === 1 ? parts[0]! : { type: 'any', of: parts };
	}

	#and(): Matcher {
		const parts = [this.#unary()];
		while (this.#operator() === 'and') {
			this.#at++;
			parts.push(this.#unary());
		}
		return parts.length === 1 ? parts[0]! : { type: 'all', of: parts };
	}

	#unary(): Matcher {
		const operator = this.#operator();
		if (operator === 'not') {
			const word = this.#words[this.#at]!;
			this.#at++;
			if (this.#at === this.#words.length && this.#block) {
				const block = this.#block;
				this.#block = undefined;
				return this.#origin({ type: 'not', of: this.#deeper(word, () => this.#allOf(block)) }, word);
			}
			if (this.#at === this.#words.length && !this.#infix) {
				this.#lowering.problem('warning', 'matcher/missing', word.span, '`not` without a matcher matches nothing.');
				return this.#origin({ type: 'not', of: EVERYTHING }, word);
			}
			return this.#origin({ type: 'not', of: this.#deeper(word, () => this.#unary()) }, word);
		}
		if (operator === '(') {
			const open = this.#words[this.#at]!;
			this.#at++;
			const inner = this.#deeper(open, () => this.#or());
			if (this.#operator() === ')') this.#at++;
			else if (!this.broken) {
				const last = this.#words[this.#words.length - 1]!;
				const glued = last.text.length > 1 && last.text.endsWith(')') && last.quote === 'none';
				this.#fail('matcher/unclosed-parenthesis', open, 'This `(` is not closed.', {
					hint: glued ? `Put a space before the \`)\` of \`${last.text}\`.` : undefined,
				});
			}
			return inner;
		}
		if (operator !== undefined || this.#at >= this.#words.length) return this.#missing(operator);
		return this.#primary();
	}

	#deeper(word: Word, read: () => Matcher): Matcher {
		const matcher = this.#lowering.matcherLimits.deeper(read);
		if (matcher) return matcher;
		const { matcherLimits } = this.#lowering;
		if (!this.broken && !matcherLimits.reported) {
			this.#fail('matcher/too-deep', word, `Matchers are nested more than ${MAX_MATCHER_DEPTH} levels deep.`);
			matcherLimits.reported = true;
		}
		this.broken = true;
		this.#at = this.#words.length;
		return BROKEN;
	}

	#missing(operator: string | undefined): Matcher {
		const before = this.#words[this.#at - 1] ?? this.#words[this.#at]!;
		const at = operator === undefined ? before : this.#words[this.#at]!;
		const message =
			operator === undefined
				? `A matcher is missing after \`${before.text}\`.`
				: `A matcher is missing before \`${operator}\`.`;
		this.#fail('matcher/missing', at, message);
		if (operator !== undefined) this.#at++;
		return BROKEN;
	}

	#primary(): Matcher {
		const lowering = this.#lowering;
		const word = this.#words[this.#at]!;
		const plain = word.quote === 'none';
		if (plain && this.#infix && word.text.startsWith('@')) {
			this.#at++;
			const matcher = lowering.scope?.resolve(word);
			if (!matcher) this.broken = true;
			return matcher ?? BROKEN;
		}
		if (plain && this.#infix && word.text.length > 1 && word.text.startsWith('(')) {
			this.#fail('matcher/glued-parenthesis', word, `\`${word.text}\` is not a matcher.`, {
				hint: `Put a space after the \`(\`: \`( ${word.text.slice(1)}\`.`,
			});
			this.#at = this.#words.length;
			return BROKEN;
		}
		const words = [word];
		this.#at++;
		while (this.#at < this.#words.length && !(this.#infix && this.#operator() !== undefined)) {
			words.push(this.#words[this.#at]!);
			this.#at++;
		}
		if (!plain) return this.#expression(words);
		const module = lowering.environment.registry.matchers.get(word.text);
		if (!module || COMBINATORS.has(word.text)) return this.#unknown(word);
		let block: Block | undefined;
		if (this.#at === this.#words.length) {
			block = this.#block;
			this.#block = undefined;
		}
		return this.#lowerModule(module, words, block);
	}

	#lowerModule(module: MatcherModule, words: readonly Word[], block: Block | undefined): Matcher {
		const [name, argument] = words as [Word, Word?];
		if (!this.#infix && !argument && !block && module.valuesOptional) {
			const message = `\`${name.text}\` without values matches nothing.`;
			this.#lowering.problem('warning', 'matcher/without-values', name.span, message, {
				hint: `Usage: ${module.usage}`,
			});
			return this.#origin({ type: 'any', of: [] }, name);
		}
		this.#lowering.matcherLimits.make(1);
		const first = spanOfWords(words);
		const span = block && block.close.source === first.source ? { ...first, end: block.close.end } : first;
		const line: Line = { words, block, alternative: undefined, span };
		const matcher = module.lower(line, this.#lowering, this.#name);
		if (!matcher) {
			this.broken = true;
			return BROKEN;
		}
		return this.#lowering.origin(matcher, span);
	}

	/** Combines the lines of a block with "and", in both dialects. Matchers of the same kind are merged. */
	#allOf(block: Block): Matcher {
		const parts: Matcher[] = [];
		for (const line of block.lines) {
			const matcher = lowerMatcherExpression(this.#lowering, line.words, line.block, this.#name);
			if (!matcher) this.broken = true;
			else this.#addMerged(parts, matcher, line);
		}
		if (parts.length === 0 && !this.broken && !this.#infix) {
			const message = 'This block holds no matcher, so it matches everything.';
			this.#lowering.problem('warning', 'matcher/missing', block.open, message);
		} else if (parts.length === 0 && !this.broken) {
			this.broken = true;
			this.#lowering.problem('error', 'matcher/missing', block.open, 'This block holds no matcher.');
		}
		return parts.length === 1 ? parts[0]! : { type: 'all', of: parts };
	}

	#addMerged(parts: Matcher[], matcher: Matcher, line: Line): void {
		const { merge, conflict } = this.#lowering.environment.registry.matchers.get(matcher.type) ?? {};
		for (const part of conflict ? parts : []) {
			const reason = part.type === matcher.type ? conflict!(part, matcher) : undefined;
			if (reason === undefined) continue;
			this.#fail('matcher/repeated', line.words[0]!, reason);
			return;
		}
		for (let at = 0; merge && at < parts.length; at++) {
			const merged = parts[at]!.type === matcher.type ? merge(parts[at]!, matcher) : undefined;
			if (!merged) continue;
			parts[at] = merged;
			return;
		}
		parts.push(matcher);
	}

	#expression(words: readonly Word[]): Matcher {
		const [word, surplus] = words as readonly [Word, Word | undefined];
		if (surplus) {
			this.#fail('matcher/unexpected-word', surplus, `\`${surplus.text}\` is unexpected here.`, {
				hint: 'A quoted word is a complete expression by itself.',
			});
			return BROKEN;
		}
		const name: Word = { text: expression.id, quote: 'none', span: word.span };
		return this.#lowerModule(expression, [name, word], undefined);
	}

	#unknown(word: Word): Matcher {
		const kinds = this.#lowering.environment.registry.matchers.keys();
		const known = [...new Set([...kinds, 'not'])].filter(name => !COMBINATORS.has(name) || name === 'not');
		const compat = this.#lowering.dialect === 'compatfile';
		const message = compat
			? `getting matcher module '${word.text}': there is no such matcher`
			: `\`${word.text}\` is not a matcher.`;
		const suggestion = didYouMean(word, known);
		const hint = suggestion.label === undefined ? `The matchers are ${formatNameList(known.sort())}.` : undefined;
		this.#fail('matcher/unknown', word, message, { ...suggestion, hint });
		this.#block = undefined;
		return BROKEN;
	}

	#fail(code: string, word: Word, message: string, more?: Suggestion & { hint?: string | undefined }): void {
		this.broken = true;
		this.#lowering.problem('error', code, word.span, message, more);
	}

	#origin(matcher: Matcher, word: Word): Matcher {
		return this.#lowering.origin(matcher, word.span);
	}
}

/** Matchers of the document that have no name in the configuration languages. */
const COMBINATORS: ReadonlySet<string> = new Set(['all', 'any', 'not']);
