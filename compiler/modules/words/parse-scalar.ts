/** Parses numbers and booleans that are written as unquoted words. */

/** Parses an unquoted word as the first type that fits: integer, floating-point number, boolean, string. */
export function parseScalar(text: string): VariableValue {
	if (/^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text))) return Number(text);
	if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text) && Number.isFinite(Number(text)))
		return Number(text);
	if (/^(?:t|T|true|True|TRUE)$/.test(text)) return true;
	if (/^(?:f|F|false|False|FALSE)$/.test(text)) return false;
	return text;
}

/** A variable's value; strings may contain placeholders. */
export type VariableValue = string | number | boolean;
