//! What the checker infers beyond the recorded expressions.
use crate::{Environment, Type};

#[test]
fn results_have_the_types_of_their_functions() {
    let object = Type::object("Thing", [("size".to_owned(), Type::Int)]);
    let environment = Environment::for_stored_expressions().with_variable("self", object);
    let table = [
        ("self.size", "int"),
        ("self.?size", "optional_type(int)"),
        ("[1, 2].map(x, string(x))", "list(string)"),
        ("[self.size].includes(1)", "bool"),
        ("{'a': [1]}", "map(string, list(int))"),
        ("optional.none()", "optional_type(dyn)"),
    ];
    for (expression, expected) in table {
        let program = environment.compile(expression);
        let found = program.map(|program| program.result_type().to_string());
        assert_eq!(found, Ok(expected.to_owned()), "{expression}");
    }
}
