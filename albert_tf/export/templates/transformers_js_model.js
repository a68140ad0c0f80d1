const tokenizer = await AutoTokenizer.from_pretrained("$folder");
const model = await $cls.from_pretrained("$folder", { dtype: "$dtype" });
const { $output } = await model(tokenizer($arguments));
console.log($shown);
