/** Parses the number and character constants of templates. */
import { type Value, wrapInt64 } from './value.ts';

/**
 * Parses an integer (`1`, `0x1F`, `0b1`, `0o7`, `017`, `1_000`) or a float (`1.5`, `1e3`, `0x1p4`). Returns undefined for other
 * text.
 */
export function parseNumber(numberText: string): bigint | number | undefined {
	const isNegative = numberText[0] === '-';
	const unsignedText = (numberText[0] === '-' || numberText[0] === '+' ? numberText.slice(1) : numberText)
		.replaceAll('_', '')
		.toLowerCase();
	const integer = parseInteger(unsignedText);
	if (integer !== undefined) {
		const value = isNegative ? -integer : integer;
		return wrapInt64(value) === value ? value : undefined;
	}
	const float = unsignedText.startsWith('0x')
		? parseHexFloat(unsignedText)
		: /^(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?$/.test(unsignedText)
			? Number(unsignedText)
			: undefined;
	if (float === undefined || !Number.isFinite(float)) return undefined;
	return isNegative ? -float : float;
}

function parseInteger(text: string): bigint | undefined {
	if (/^0x[0-9a-f]+$|^0b[01]+$|^0o[0-7]+$|^(?:0|[1-9]\d*)$/.test(text)) return BigInt(text);
	if (/^0[0-7]+$/.test(text)) return BigInt(`0o${text.slice(1)}`);
	return undefined;
}

function parseHexFloat(text: string): number | undefined {
	const hexFloatMatch = /^0x([0-9a-f]*)\.?([0-9a-f]*)p([+-]?\d+)$/.exec(text);
	if (!hexFloatMatch) return undefined;
	return (
		Number.parseInt(`0${hexFloatMatch[1]}${hexFloatMatch[2]}`, 16) *
		2 ** (Number(hexFloatMatch[3]) - 4 * hexFloatMatch[2]!.length)
	);
}

/** Returns the code point of a character constant as an integer. */
export function parseCharacter(character: string): Value {
	return BigInt(character.codePointAt(0)!);
}
