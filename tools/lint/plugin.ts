/** House rules that `deno lint` checks; the map they follow is in places.ts. */

import {
  areaOf,
  EFFECT_AREAS,
  EFFECTS,
  EMPTY_NAMES,
  MAY_IMPORT,
  NEVER,
  PACKAGES,
  SYNCHRONOUS,
} from "./places.ts";

type Context = Deno.lint.RuleContext;
type Node = Deno.lint.Node;

/** `a/b/../c` without the dots. */
function normalise(path: string): string {
  const parts: string[] = [];
  for (const part of path.split("/")) {
    if (part === ".." && parts.length > 0 && parts.at(-1) !== "..") parts.pop();
    else if (part !== ".") parts.push(part);
  }
  return parts.join("/");
}

/** Why a file may not import this specifier; undefined if it may. */
function importFault(file: string, specifier: string): string | undefined {
  const area = areaOf(file);
  if (/^(?:https?|jsr|npm):/.test(specifier)) {
    return `Cannot import ${specifier}: dependencies stand in deno.json and come from npm.`;
  }
  if (area === null) return undefined;
  if (specifier.startsWith(".")) {
    const target = normalise(`${file.replaceAll("\\", "/").replace(/[^/]+$/, "")}${specifier}`);
    const never = NEVER.find((rule) => rule.from.test(file) && rule.to.test(target));
    if (never) return `Cannot import ${specifier}: ${never.why}.`;
    const to = /(?:^|\/)src\/([^/]+)\//.exec(target)?.[1];
    if (to === undefined) {
      return area === "main" && /(?:^|\/)main\.ts$/.test(target)
        ? undefined
        : `Cannot import ${specifier}: src imports nothing outside of src.`;
    }
    if (/_test\.ts$/.test(target)) return `Cannot import ${specifier}: it is a test.`;
    const may = MAY_IMPORT[area];
    if (may === undefined) return `Cannot place ${area}: no rule says what it may import.`;
    return may.includes(to)
      ? undefined
      : `Cannot import ${specifier}: ${area} may import ${may.join(", ")}.`;
  }
  if (specifier.startsWith("node:")) {
    return area === "sys"
      ? undefined
      : `Cannot import ${specifier}: only sys uses the system's modules.`;
  }
  const name = /^(?:@[^/]+\/)?[^/]+/.exec(specifier)![0];
  const areas = PACKAGES[name];
  if (areas === undefined) return `Cannot import ${name}: it is no dependency of the program.`;
  return areas.includes(area)
    ? undefined
    : `Cannot import ${name}: only ${
      areas.join(", ")
    } may, so that it loads only where it is used.`;
}

const imports: Deno.lint.Rule = {
  create(context) {
    const check = (node: Node, source: unknown): void => {
      const literal = source as { type?: string; value?: unknown } | null | undefined;
      if (literal?.type !== "Literal" || typeof literal.value !== "string") return;
      const message = importFault(context.filename, literal.value);
      if (message !== undefined) context.report({ node, message });
    };
    return {
      ImportDeclaration: (node) => check(node, node.source),
      ExportAllDeclaration: (node) => check(node, node.source),
      ExportNamedDeclaration: (node) => check(node, node.source),
      ImportExpression: (node) => check(node, node.source),
    };
  },
};

const TYPE_PARENTS = new Set([
  "TSTypeQuery",
  "TSQualifiedName",
  "TSTypeReference",
  "TSMethodSignature",
  "TSPropertySignature",
  "TSImportType",
  "TSEnumMember",
  "TSInterfaceHeritage",
  "ExportSpecifier",
  "LabeledStatement",
  "BreakStatement",
  "ContinueStatement",
]);

/** What an identifier is in its place: a name being bound, a value being used, or neither. */
function roleOf(node: Deno.lint.Identifier): "binding" | "use" | "neither" {
  // The tree's types do not know every parent; its shape is ESTree's.
  // deno-lint-ignore no-explicit-any
  const parent = node.parent as any;
  const is = (other: Node | null | undefined): boolean =>
    other !== null && other !== undefined && other.range?.[0] === node.range[0] &&
    other.range?.[1] === node.range[1];
  if (TYPE_PARENTS.has(parent.type)) return "neither";
  switch (parent.type) {
    case "MemberExpression":
      return !parent.computed && is(parent.property) ? "neither" : "use";
    case "Property":
      if (parent.parent?.type === "ObjectPattern") return is(parent.value) ? "binding" : "neither";
      return is(parent.value) || parent.computed ? "use" : "neither";
    case "MethodDefinition":
    case "PropertyDefinition":
    case "AccessorProperty":
      return !parent.computed && is(parent.key) ? "neither" : "use";
    case "VariableDeclarator":
    case "ClassDeclaration":
    case "ClassExpression":
    case "TSEnumDeclaration":
      return is(parent.id) ? "binding" : "use";
    case "FunctionDeclaration":
    case "FunctionExpression":
    case "ArrowFunctionExpression":
      return is(parent.body) ? "use" : "binding";
    case "AssignmentPattern":
      return is(parent.left) ? "binding" : "use";
    case "ArrayPattern":
    case "RestElement":
    case "CatchClause":
    case "ImportSpecifier":
    case "ImportDefaultSpecifier":
    case "ImportNamespaceSpecifier":
    case "TSParameterProperty":
      return "binding";
    default:
      return "use";
  }
}

const effects: Deno.lint.Rule = {
  create(context) {
    const area = areaOf(context.filename);
    if (area === null || EFFECT_AREAS.has(area)) return {};
    const bound = new Set<string>();
    const uses: Deno.lint.Identifier[] = [];
    const report = (node: Node, name: string): void =>
      context.report({
        node,
        message: `Cannot name ${name} here: effects live in src/sys and come by a port.`,
      });
    return {
      Identifier(node) {
        if (!EFFECTS.has(node.name)) return;
        const role = roleOf(node);
        if (role === "binding") bound.add(node.name);
        // A shorthand property comes twice, as its key and as its value.
        else if (role === "use" && uses.at(-1)?.range[0] !== node.range[0]) uses.push(node);
      },
      MemberExpression(node) {
        if (node.object.type !== "Identifier" || node.property.type !== "Identifier") return;
        const { name } = node.property;
        if (["globalThis", "self", "window"].includes(node.object.name) && EFFECTS.has(name)) {
          report(node, `${node.object.name}.${name}`);
        }
        if (node.object.name === "Math" && name === "random") report(node, "Math.random");
      },
      "Program:exit"() {
        for (const use of uses) if (!bound.has(use.name)) report(use, use.name);
      },
    };
  },
};

const synchronous: Deno.lint.Rule = {
  create(context) {
    if (!SYNCHRONOUS.test(context.filename.replaceAll("\\", "/"))) return {};
    if (areaOf(context.filename) === null) return {};
    const report = (node: Node): void =>
      context.report({ node, message: "Cannot wait here: core and decisions are synchronous." });
    const ifAsync = (node: Node & { async: boolean }): void => {
      if (node.async) report(node);
    };
    return {
      FunctionDeclaration: ifAsync,
      FunctionExpression: ifAsync,
      ArrowFunctionExpression: ifAsync,
      AwaitExpression: report,
      NewExpression(node) {
        if (node.callee.type === "Identifier" && node.callee.name === "Promise") report(node);
      },
    };
  },
};

const names: Deno.lint.Rule = {
  create(context) {
    return {
      Program(node) {
        const file = context.filename.replaceAll("\\", "/").split("/").at(-1)!;
        const name = file.replace(/\.[^.]*$/, "").replace(/_test$/, "");
        const message = !/^[a-z0-9]+(?:_[a-z0-9]+)*$/.test(name)
          ? `Cannot name a file ${file}: files are snake_case.`
          : EMPTY_NAMES.test(name)
          ? `Cannot name a file ${file}: say what it holds.`
          : undefined;
        if (message !== undefined) context.report({ node, message });
      },
    };
  },
};

/** Statements that only declare; anything else at the top of a module is work done by importing it. */
const DECLARATIONS = new Set([
  "ImportDeclaration",
  "ExportNamedDeclaration",
  "ExportDefaultDeclaration",
  "ExportAllDeclaration",
  "FunctionDeclaration",
  "ClassDeclaration",
  "VariableDeclaration",
  "TSTypeAliasDeclaration",
  "TSInterfaceDeclaration",
  "TSEnumDeclaration",
  "TSDeclareFunction",
]);

const importing: Deno.lint.Rule = {
  create(context: Context) {
    const area = areaOf(context.filename);
    if (area === null || area === "main" || area === "entry") return {};
    return {
      Program(node) {
        for (const statement of node.body) {
          if (DECLARATIONS.has(statement.type)) continue;
          context.report({
            node: statement,
            message: "Cannot act at import time: only main.ts and Worker entries begin something.",
          });
        }
      },
    };
  },
};

/** The plugin, as deno.json names it. */
const plugin: Deno.lint.Plugin = {
  name: "house",
  rules: { imports, effects, synchronous, names, importing },
};

export default plugin;
