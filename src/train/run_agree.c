/* What the ranks of a run were given, compared before they compute. */
#include "train/facts.h"
#include "train/run_private.h"

/* Other values on a rank would lead it to other collectives, or to other numbers. */
static enum tri_status agree_on_recipe(struct tri_comm *world, const struct tri_recipe *recipe)
{
    struct tri_text facts = {0};
    if (world == NULL)
        return TRI_OK;
    enum tri_status st = tri_recipe_facts(recipe, &facts);
    if (st == TRI_OK)
        st = tri_facts_agree(world, "", "start all ranks with the same recipe", &facts);
    tri_text_free(&facts);
    return st;
}

static enum tri_status agree_on_model(struct tri_comm *world, const struct tri_arch *arch)
{
    struct tri_text facts = {0};
    enum tri_status st = tri_facts_of_arch(arch, &facts);
    if (st == TRI_OK)
        st = tri_facts_agree(world, "the model's ", "give all ranks the same config.json", &facts);
    tri_text_free(&facts);
    return st;
}

enum tri_status tri_run_agree_on_mesh(const struct tri_run *run, struct tri_comm *world)
{
    TRI_TRY(agree_on_recipe(world, run->recipe));
    return agree_on_model(world, &run->model->arch);
}

enum tri_status tri_run_agree(const struct tri_run *run)
{
    struct tri_comm *world = run->mesh.world;
    if (world == NULL)
        return TRI_OK;
    TRI_TRY(agree_on_recipe(world, run->recipe));
    if (run->data != NULL)
        TRI_TRY(tri_comm_agree(world, "the data", (int64_t)tri_dataset_identity(run->data)));
    return run->eval == NULL ? TRI_OK
                             : tri_comm_agree(world, "the evaluation data",
                                              (int64_t)tri_dataset_identity(run->eval));
}
